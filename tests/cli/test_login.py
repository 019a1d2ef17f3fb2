"""mpsbar login as a person types it, in a home of its own."""

import os
import resource
import subprocess
import sys

import pytest
from worker_kit import ROOT, TIMEOUT

pytestmark = pytest.mark.skipif(
    sys.platform == "darwin", reason="would change this Mac's login items"
)


@pytest.fixture
def home(tmp_path):
    return tmp_path


@pytest.fixture
def mpsbar(home):
    def run(*arguments, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("MPSBAR_", "XDG_"))}
        return subprocess.run(
            [sys.executable, "-m", "mpsbar", "login", *arguments], env=env | {"HOME": str(home)},
            capture_output=True, text=True, cwd=ROOT, timeout=TIMEOUT, **more,
        )  # fmt: skip

    return run


def read_result(done):
    return done.returncode, done.stdout, done.stderr


def test_the_whole_round(mpsbar, home):
    entry = home / ".config/autostart/mpsbar.desktop"
    on, off = f"mpsbar opens at login ({entry})\n", "mpsbar does not open at login\n"
    assert read_result(mpsbar("status")) == (1, off, "")
    assert read_result(mpsbar("on")) == (0, on, "")
    assert f"Exec={sys.executable} -m mpsbar status --watch 2\n" in entry.read_text()
    assert read_result(mpsbar("on")) == (0, on, "")
    assert read_result(mpsbar("status")) == (0, on, "")
    assert read_result(mpsbar("off")) == (0, off, "")
    assert read_result(mpsbar("off")) == (0, off, "")
    assert list(home.iterdir()) == []


def test_a_full_disk_leaves_nothing_behind(mpsbar, home):
    """The kernel's limit on file sizes stands for the disk."""
    done = mpsbar("on", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)))
    entry = home / ".config/autostart/mpsbar.desktop"
    words = f"mpsbar does not open at login: couldn't change {entry} (File too large)\n"
    assert read_result(done) == (1, "", words)
    assert list(home.iterdir()) == []


def test_what_cannot_be_is_one_sentence(mpsbar, home):
    entry = home / ".config/autostart/mpsbar.desktop"
    entry.parent.mkdir(parents=True)
    entry.write_text("theirs")
    words = f"mpsbar can't change whether it opens at login: {entry} was not created by mpsbar and was left unchanged\n"
    assert read_result(mpsbar("on")) == (1, "", words)
    assert read_result(mpsbar("off")) == (1, "", words)
    assert read_result(mpsbar("status")) == (1, words, "")
    assert entry.read_text() == "theirs"
