"""Nothing is written into the app: every Python that mpsbar starts is started with -B."""

import ast
import sys

from worker_kit import ROOT

STARTS = ("run", "Popen", "check_output", "call", "check_call")


def find_starts():
    """(file, line, the first elements of the command) of each list given to subprocess."""
    for path in sorted((ROOT / "mpsbar").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            is_start = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in STARTS
            if is_start and node.args and isinstance(node.args[0], ast.List):
                words = [ast.unparse(word) for word in node.args[0].elts]
                yield path.name, node.lineno, words


def test_every_python_is_told_not_to_write_bytecode():
    pythons = [
        (file, line, words)
        for file, line, words in find_starts()
        if "python" in words[0] or "executable" in words[0]
    ]
    assert {file for file, _, _ in pythons} >= {"start_python.py", "demo.py"}
    assert [start for start in pythons if "'-B'" not in start[2][1:3]] == []


def test_the_doctor_does_not_look_at_the_apps_own_python(monkeypatch):
    from mpsbar.core.snapshot import Snapshot
    from mpsbar.doctor.pythons import find_pythons

    monkeypatch.setattr("shutil.which", lambda name: None)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    assert find_pythons(Snapshot(0.0), ()) == [sys.executable]
    monkeypatch.setattr(sys, "frozen", "macosx_app", raising=False)
    assert find_pythons(Snapshot(0.0), ()) == []
