"""One of each: every class name means one thing, and one engine of each kind runs, in the monitor."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import mpsbar

PACKAGE = Path(mpsbar.__file__).parent


@cache
def parse_all(folder):
    return {
        path.relative_to(folder).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in folder.rglob("*.py")
    }


def find_doubled_classes(trees):
    """Files by class name, without its leading underscore, where there are several."""
    found = defaultdict(list)
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(file)
    return {name: sorted(files) for name, files in found.items() if len(files) > 1}


def find_calls(trees):
    """For each name that is called, also by way of its module: the files, one for each call."""
    found = defaultdict(list)
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
                found[getattr(node.func, "id", None) or node.func.attr].append(file)
    return found


def test_every_class_name_means_one_thing():
    assert find_doubled_classes(parse_all(PACKAGE)) == {}


def test_the_monitor_alone_has_an_engine_of_each_kind():
    calls = find_calls(parse_all(PACKAGE))
    engines = ["Alerts", "ProcessTracker", "EventLog", "Trends", "Scanner", "ActionRunner"]
    # Of other computers, which `top --host` asks, it keeps the last minutes itself.
    others = {"Trends": ["ui/terminal/hosts_state.py"]}
    assert {engine: calls[engine] for engine in engines} == {
        name: ["monitor.py", *others.get(name, [])] for name in engines
    }


def test_a_second_class_and_a_second_engine_are_found(tmp_path):
    (tmp_path / "first.py").write_text("class Span: ...\nalerts = Alerts()\n")
    (tmp_path / "second.py").write_text("class _Span: ...\nalerts = core.alerts.Alerts()\n")
    trees = parse_all(tmp_path)
    assert find_doubled_classes(trees) == {"Span": ["first.py", "second.py"]}
    assert sorted(find_calls(trees)["Alerts"]) == ["first.py", "second.py"]
