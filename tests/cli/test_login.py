"""mpsbar login as a person types it, in a home of its own."""

import os
import resource
import sys
from functools import partial

import pytest
from cli.command_kit import run_command

pytestmark = pytest.mark.skipif(
    sys.platform == "darwin", reason="would change this Mac's login items"
)


@pytest.fixture
def home(tmp_path):
    return tmp_path


@pytest.fixture
def login(workers, home):
    """Without folders of mpsbar's own outside of this home."""
    others = {name: None for name in os.environ if name.startswith("XDG_")}
    others |= {"MPSBAR_DATA_DIR": None, "MPSBAR_RUN_DIR": None, "HOME": str(home)}
    # What opens at login is what was called: `python -m mpsbar`.
    return partial(run_command, workers, "login", patient=False, **others)


def read_result(done):
    return done.returncode, done.stdout, done.stderr


def test_the_whole_round(login, home):
    entry = home / ".config/autostart/mpsbar.desktop"
    on, off = f"mpsbar opens at login ({entry})\n", "mpsbar does not open at login\n"
    assert read_result(login("status")) == (1, off, "")
    assert read_result(login("on")) == (0, on, "")
    assert f"Exec={sys.executable} -m mpsbar status --watch 2\n" in entry.read_text()
    assert read_result(login("on")) == (0, on, "")
    assert read_result(login("status")) == (0, on, "")
    assert read_result(login("off")) == (0, off, "")
    assert read_result(login("off")) == (0, off, "")
    assert list(home.iterdir()) == []


def test_a_full_disk_leaves_nothing_behind(login, home):
    """The kernel's limit on file sizes stands for the disk."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

    done = login("on", popen={"preexec_fn": limit})
    entry = home / ".config/autostart/mpsbar.desktop"
    words = f"mpsbar does not open at login: couldn't change {entry} (File too large)\n"
    assert read_result(done) == (1, "", words)
    assert list(home.iterdir()) == []


def test_what_cannot_be_is_one_sentence(login, home):
    entry = home / ".config/autostart/mpsbar.desktop"
    entry.parent.mkdir(parents=True)
    entry.write_text("theirs")
    words = f"mpsbar can't change whether it opens at login: {entry} was not created by mpsbar and was left unchanged\n"
    assert read_result(login("on")) == (1, "", words)
    assert read_result(login("off")) == (1, "", words)
    assert read_result(login("status")) == (1, words, "")
    assert entry.read_text() == "theirs"
