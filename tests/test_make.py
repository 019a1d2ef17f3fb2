"""The Makefile's own promises: each missing thing is one sentence, and nothing is installed twice."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make on this machine")


def make(*arguments, cwd=ROOT):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=cwd, env=env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def fake_python(folder, fails_on):
    """A python that is the real one, except that some code fails in it."""
    path = folder / "python"
    path.write_text(f"""#!/bin/sh
case "$2" in *"{fails_on}"*) exit 1;; esac
case "$1" in --version) echo Python 3.8.1; exit 0;; esac
exec {sys.executable} "$@"
""")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize(
    ("fails_on", "sentence"),
    [
        ("version_info", "mpsbar: Python 3.8.1 is too old, 3.10 or newer is needed: make PYTHON=python3.11\n"),
        ("import venv", "mpsbar: this Python has no venv module: on Debian and Ubuntu, apt-get install python3-venv\n"),
        ("import ensurepip", "mpsbar: this Python cannot put pip into a venv (no ensurepip): on Debian and Ubuntu, apt-get install python3-venv\n"),
    ],
)  # fmt: skip
def test_a_python_that_will_not_do_is_one_sentence_with_its_cure(tmp_path, fails_on, sentence):
    done = make("check-python", f"PYTHON={fake_python(tmp_path, fails_on)}")
    assert done.returncode == 2
    assert done.stdout == sentence


def test_no_python_at_all(tmp_path):
    done = make("check-python", "PYTHON=python-that-is-not-there")
    assert done.returncode == 2
    assert done.stdout.startswith("mpsbar: no 'python-that-is-not-there' was found: install Python")


def test_a_good_python_passes_silently():
    done = make("check-python", f"PYTHON={sys.executable}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


needs_venv = pytest.mark.skipif(
    not (ROOT / ".venv" / "ready").exists(), reason="not run by make test: .venv is not its own"
)


@needs_venv
def test_a_second_setup_installs_nothing():
    ready = ROOT / ".venv" / "ready"
    site = next((ROOT / ".venv" / "lib").glob("python*/site-packages"))
    before = ready.stat().st_mtime_ns, site.stat().st_mtime_ns
    done = make("setup")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pip" not in done.stdout
    assert "setting up" not in done.stdout
    assert (ready.stat().st_mtime_ns, site.stat().st_mtime_ns) == before


@needs_venv
def test_what_changes_the_installation_installs_again():
    wanted = make("wanted").stdout
    assert (ROOT / ".venv" / "ready").read_text() == wanted
    for changed in ("TORCH=torch==9.9", "PYTHON=python3.99"):
        assert make("wanted", changed).stdout != wanted


@needs_venv
def test_a_hidden_editable_install_is_one_sentence_with_its_cure(tmp_path):
    """As on macOS, where a .pth file with the hidden flag is skipped: here the import fails."""
    venv = tmp_path / ".venv"
    (venv / "bin").mkdir(parents=True)
    python = venv / "bin" / "python"
    python.write_text(
        f'#!/bin/sh\ncase "$2" in *"import mpsbar"*) exit 1;; esac\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "tests" / "softmps").mkdir(parents=True)
    shutil.copy(ROOT / "tests/softmps/pyproject.toml", tmp_path / "tests/softmps")
    (venv / "ready").write_text(make("wanted", cwd=tmp_path).stdout)
    done = make("setup", cwd=tmp_path)
    assert done.returncode == 2
    assert "chflags -R nohidden .venv" in done.stdout
    assert done.stdout.count("\n") == 1
