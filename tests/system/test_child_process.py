"""One throwaway Python: its marked lines, its noise, its end, and what it is not told."""

import sys

import pytest

from mpsbar.system.child_process import (
    build_environment,
    classify_start,
    start_child,
)
from mpsbar.system.ownership import NotTrustedError

MARK = "\x1etest "


def run(code, stdin=None):
    """Its answers, its exit code, the end of its stderr."""
    answers = []
    with start_child(sys.executable, ["-c", code], MARK, stdin) as child:
        for heard in child.read_answers():
            answers += heard
    return answers, child.code, child.tail


@pytest.mark.usefixtures("each_systems_sockets")
def test_marked_lines_are_answers_and_the_rest_is_noise():
    code = f"""
import os, sys
print("noise", end="")
print('\\n' + {MARK!r} + '{{"a": 1}}')
print('no line of its own ' + {MARK!r} + '{{"a": 2}}')
print({MARK!r} + '{{"broken"')
print({MARK!r} + '["no object"]')
print({MARK!r} + '{{"a": "' + "x" * 300_000 + '"}}')
sys.stdout.flush()
print({MARK!r} + sys.stdin.readline().strip())
sys.stderr.write("warned " * 1000 + "last words")
sys.exit(3)
"""
    answers, code, tail = run(code, b'{"b": 3}\n')
    assert answers == [{"a": 1}, {"b": 3}]
    assert (code, len(tail), tail[-10:]) == (3, 4096, b"last words")


@pytest.mark.usefixtures("each_systems_sockets")
def test_one_that_closes_its_pipes_and_lives_on_is_waited_for():
    code = f"""
import os, time
os.write(1, ({MARK!r} + '{{"a": 1}}\\n').encode())
os.close(1)
os.close(2)
time.sleep(0.5)
os._exit(7)
"""
    assert run(code) == ([{"a": 1}], 7, b"")


@pytest.mark.usefixtures("each_systems_sockets")
def test_a_line_without_an_end_is_not_kept():
    """An endless one would fill our memory; what comes after it is read."""
    code = f"print('x' * 3_000_000)\nprint({MARK!r} + '{{\"a\": 1}}')"
    answers, longest = [], 0
    with start_child(sys.executable, ["-c", code], MARK) as child:
        for new in child.read_answers():
            answers += new
            longest = max(longest, len(child._rest))
    assert answers == [{"a": 1}]
    assert longest < 1 << 18


@pytest.mark.usefixtures("each_systems_sockets")
def test_it_is_ended_by_the_end_of_the_block():
    with start_child(sys.executable, ["-c", "import time; time.sleep(600)"], MARK) as child:
        assert next(iter(child.read_answers())) == []
    assert child.code == -9
    assert child.process.returncode == -9


def test_what_cannot_be_started_raises(tmp_path):
    with pytest.raises(FileNotFoundError), start_child(str(tmp_path / "python"), [], MARK):
        pass


def test_the_apps_own_python_is_kept_out(monkeypatch):
    environ = {
        "PYTHONHOME": "/app",
        "PYTHONPATH": "/app",
        "__PYVENV_LAUNCHER__": "/x",
        "HOME": "/me",
    }
    assert build_environment(environ) == {
        "PYTHONHOME": "/app", "PYTHONPATH": "/app", "HOME": "/me", "MPSBAR_DISABLE": "1",
    }  # fmt: skip
    monkeypatch.setattr(sys, "frozen", "macosx_app", raising=False)
    assert build_environment(environ) == {"HOME": "/me", "MPSBAR_DISABLE": "1"}


@pytest.mark.usefixtures("each_systems_sockets")
def test_one_that_takes_longer_than_it_was_allowed_to():
    code = f"import time\nprint({MARK!r} + '{{\"a\": 1}}', flush=True)\ntime.sleep(600)"
    answers = []
    with start_child(sys.executable, ["-c", code], MARK) as child:
        child.allow(600)
        for new in child.read_answers():
            answers += new
            if new:
                child.allow(0.1)
    assert (answers, child.has_hung, child.code) == ([{"a": 1}], True, -9)


def test_one_that_ends_in_time_has_not_hung():
    with start_child(sys.executable, ["-c", "pass"], MARK) as child:
        child.allow(600)
        assert list(child.read_answers())[-1] == []
    assert (child.has_hung, child.code) == (False, 0)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (NotTrustedError("open to all"), "unsafe"), (FileNotFoundError(), "no_python"),
        (NotADirectoryError(), "no_python"), (PermissionError(), "not_python"),
        (OSError(8, "Exec format error"), "not_python"), (ValueError("null byte"), "not_python"),
    ],
)  # fmt: skip
def test_why_it_could_not_be_started(error, failure):
    assert classify_start(error) == failure
