"""The files that `mpsbar compare` hands to another Python: all of them, each after those that it imports."""

import ast
import sys
from contextlib import contextmanager
from pathlib import Path

from worker_kit import wait_for

import mpsbar.dtypes.compare
from mpsbar.dtypes import compare_runner
from mpsbar.dtypes.compare_runner import MARK, MODULES, CompareRunner
from mpsbar.system.child_process import start_child

FOLDER = Path(mpsbar.dtypes.compare.__file__).parent


def test_every_file_is_handed_over():
    assert sorted(MODULES) == sorted(
        path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__"
    )


def test_each_comes_after_those_it_imports():
    for number, name in enumerate(MODULES):
        tree = ast.parse((FOLDER / f"{name}.py").read_text())
        needed = {
            node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.level
        }
        assert needed <= set(MODULES[:number]), name


# A dtype is finished and told, then the next one hangs.
CHILD = f"""
import json, pathlib, sys, time
for answer in ({{"stage": "part", "text": '{{"dtypes": {{"float32": {{}}}}}}'}}, {{"stage": "so_far"}}):
    print({MARK!r} + json.dumps(answer), flush=True)
pathlib.Path(sys.argv[1]).touch()
time.sleep(3600)
"""


def test_a_dtype_that_was_finished_before_the_cancel_is_kept(tmp_path, monkeypatch):
    """Also if nothing was read of it yet: the reader may have been without a core."""
    finished = tmp_path / "finished"
    runner = CompareRunner([sys.executable], "mine.py", "make", {})

    @contextmanager
    def start(python, _script, mark, _stdin):
        with start_child(python, ["-c", CHILD, str(finished)], mark) as child:
            wait_for(finished.exists, "a finished dtype")
            runner.cancel()
            read = child._read
            reads = []
            monkeypatch.setattr(
                type(child),
                "_read",
                lambda _self, answers: read(answers) if reads else reads.append(1),
            )
            yield child

    monkeypatch.setattr(compare_runner, "start_script", start)
    result = runner._run_once(sys.executable, ["float32"], lambda *_: None)
    assert result.ended == "cancelled"
    assert result.data == {"dtypes": {"float32": {}}}


def test_a_crash_by_a_signal_without_a_name_is_a_crash():
    found = compare_runner._parse("python", compare_runner._ChildOutput(), b"", -35)
    assert (found.ended, found.text) == ("crashed", "signal 35")
