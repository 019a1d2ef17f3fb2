"""The log: rotated, private, not to be forged into, and never a reason to stop."""

import logging
import os
import re
import stat
import subprocess
import sys

import pytest
from worker_kit import ROOT, TIMEOUT

from mpsbar.system import paths
from mpsbar.system.log import start_log


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.delenv("MPSBAR_DEBUG", raising=False)
    yield paths.log_file()
    logger = logging.getLogger("mpsbar")
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
        handler.close()
    logger.propagate = True


def run_code(code):
    """In a process of its own: limits of the kernel stay with it."""
    return subprocess.run(
        [sys.executable, "-c", code], env=os.environ, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT
    )  # fmt: skip


def test_a_line_has_its_time_and_the_file_is_private(file):
    old = os.umask(0)
    try:
        start_log().info("started %s", "here")
    finally:
        os.umask(old)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d [\d:,]+ INFO MainThread: started here\n", file.read_text()
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_folder_and_a_file_that_were_there_keep_their_modes(file):
    file.parent.mkdir(0o755)
    file.write_text("old\n")
    file.chmod(0o644)
    start_log().info("new")
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o755
    assert file.read_text().startswith("old\n")


def test_started_twice_it_writes_once(file):
    start_log()
    start_log().info("once")
    logging.getLogger("mpsbar.ui").debug("not at this level")
    assert file.read_text().count("\n") == 1


def test_it_is_rotated_and_three_are_kept(file):
    log = start_log()
    for _ in range(700):
        log.info("x" * 7900)
    names = sorted(path.name for path in file.parent.iterdir())
    assert names == ["mpsbar.log", "mpsbar.log.1", "mpsbar.log.2", "mpsbar.log.3"]
    assert all(path.stat().st_size <= 1_000_000 for path in file.parent.iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()} == {0o600}


HOSTILE = "a\nb\r\x1b]0;title\x07\u2028\x85\udcff\u202e"


def test_a_hostile_name_stays_on_its_line(file):
    start_log().info("worker %s ended", HOSTILE)
    (line,) = file.read_text().splitlines()
    assert line.isprintable()
    assert line.endswith(r"worker a\nb\r\x1b]0;title\x07\u2028\x85\udcff\u202e ended")


def test_a_traceback_has_its_lines_and_none_looks_like_a_record(file):
    log = start_log()
    try:
        raise ValueError("2026-01-01 00:00:00,000 INFO x: forged\n2026-01-01 INFO forged\x1b[2J")
    except ValueError:
        log.exception("a callback failed")
    first, *rest = file.read_text().splitlines()
    assert first.endswith("ERROR MainThread: a callback failed")
    assert len(rest) >= 4
    assert all(line.startswith("    ") and line.isprintable() for line in rest)
    assert rest[-1] == r"    2026-01-01 INFO forged\x1b[2J"


class Hostile:
    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __str__


@pytest.mark.parametrize("arguments", [("%d", "x"), ("%s %s", "x"), ("%s", Hostile())])
def test_what_cannot_be_shown_does_not_raise(file, arguments, capsys):
    start_log().info(*arguments)
    assert "its arguments cannot be shown" in file.read_text()
    assert capsys.readouterr().err == ""


def test_a_long_message_and_a_long_traceback_are_cut(file):
    log = start_log()
    log.info("x" * 100_000)
    try:
        raise ValueError("y" * 100_000 + "end")
    except ValueError:
        log.exception("z")
    assert file.stat().st_size < 20_000
    assert file.read_text().endswith("yend\n")


@pytest.mark.parametrize("kind", ["a file for the folder", "a folder for the file", "a pipe"])
def test_without_a_log_it_goes_to_stderr(file, kind, capsys):
    if kind == "a file for the folder":
        file.parent.write_text("")
    elif kind == "a folder for the file":
        file.mkdir(parents=True)
    else:
        file.parent.mkdir()
        os.mkfifo(file)
    log = start_log()
    log.info("goes on %s", HOSTILE)
    first, second = capsys.readouterr().err.splitlines()
    assert "WARNING MainThread: couldn't open the log " in first
    assert "goes on a\\nb" in second


def test_without_stderr_either_it_goes_on(file, monkeypatch):
    file.parent.write_text("")
    monkeypatch.setattr(sys, "stderr", None)
    start_log().info("nobody hears")


def test_a_disk_that_becomes_full_does_not_stop_the_app(file):
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))\n"
        "from mpsbar.system.log import start_log\n"
        "log = start_log()\n"
        "for number in range(10): log.info('line %d', number)\n"
        "start_log().info('started anew')\n"
        "print('goes on')\n"
    )
    done = run_code(code)
    assert (done.returncode, done.stdout) == (0, "goes on\n")
    assert "line 0" in file.read_text()
    assert "line 9" in done.stderr
    assert done.stderr.endswith("started anew\n")
    assert "Traceback" not in done.stderr


def test_a_disk_with_room_again_is_written_to_again(file):
    code = (
        "import resource\n"
        "from mpsbar.system.log import start_log\n"
        "log = start_log()\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))\n"
        "log.info('lost')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "log.info('kept')\n"
    )
    done = run_code(code)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert done.stderr.endswith("lost\n")
    assert file.read_text().endswith("kept\n")


def test_debugging_says_more(file, monkeypatch):
    monkeypatch.setenv("MPSBAR_DEBUG", "1")
    start_log().debug("more")
    assert "DEBUG" in file.read_text()


def test_no_key_is_written_to_it(file):
    logger = start_log()
    logger.warning("reading failed: %s", "token=hunter2 hf_AbCdEfGhIjKlMnOpQrStUvWx")
    try:
        raise ValueError("api_key=hunter2")
    except ValueError:
        logger.exception("it failed")
    text = file.read_text()
    assert "reading failed: *** ***" in text
    assert "ValueError: ***" in text
    assert "hunter2" not in text
