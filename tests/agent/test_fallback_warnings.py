"""The first operation that torch warned of, read from what Python notes of warnings."""

import importlib.util
import types
from pathlib import Path

import pytest

from mpsbar.agent import fallback_warnings
from mpsbar.agent.fallback_warnings import CUT, find_first, is_fallback, name_operation

TEXT = "The operator 'aten::{}' is not currently supported on the MPS backend and will fall back to run on the CPU."


@pytest.fixture
def modules(monkeypatch):
    """All there are, the oldest first, and time to look at every one."""
    modules = {"__main__": types.ModuleType("__main__")}
    monkeypatch.setattr(fallback_warnings, "sys", types.SimpleNamespace(modules=modules))
    monkeypatch.setattr(fallback_warnings, "MAX_SECONDS", 60.0)
    return modules


@pytest.fixture
def add_module(modules):
    def add(name, registry=None, **names):
        module = types.ModuleType(name)
        if registry is not None:
            names["__warningregistry__"] = registry
        module.__dict__.update(names)
        modules[name] = module

    return add


def test_a_warning_that_python_has_noted_is_found(add_module):
    assert find_first() is None
    noted = {
        "version": 3,
        ("other", UserWarning, 1): True,
        (TEXT.format("lcm"), UserWarning, 3): True,
    }
    add_module("model", noted, __file__="/w/model.py")
    assert find_first() == ["aten::lcm", "/w/model.py:3"]


@pytest.mark.parametrize(
    "registry",
    [
        7,
        [],
        {"version": 1},
        {("x", UserWarning, 3): 1},
        {(7, 8, 9): 1},
        {(TEXT, UserWarning): 1},
        {(TEXT, 1, "3"): 1},
    ],
)
def test_what_is_none_is_left_alone(add_module, registry):
    add_module("odd", registry)
    assert find_first() is None


def test_a_module_that_is_loaded_late_stays_so(modules, add_module, tmp_path):
    add_module("found", {(TEXT.format("b"), UserWarning, 9): True})
    (tmp_path / "late.py").write_text("raise SystemExit('loaded')\n")
    spec = importlib.util.spec_from_file_location("late", tmp_path / "late.py")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    modules.update({"late": module, "none at all": None})
    assert find_first() == ["aten::b", ""]


def test_the_main_script_has_lost_its_file_by_then(add_module):
    loader = types.SimpleNamespace(path="/w/train.py")
    add_module(
        "script", {(TEXT.format("c"), UserWarning, 9): True}, __loader__=loader, __file__=None
    )
    assert find_first() == ["aten::c", "/w/train.py:9"]


def test_however_much_a_host_has_warned_little_is_looked_at(modules, add_module, monkeypatch):
    monkeypatch.setattr(fallback_warnings, "_MAX_NOTES", 50)
    add_module("long", {("x" * 1001 + TEXT.format("far"), UserWarning, 9): True})
    assert find_first() is None
    noise = {(f"loss {n}", UserWarning, 1): True for n in range(49)}
    add_module("noise", noise)
    assert find_first() is None
    add_module("noise", {**noise, "version": 3, (TEXT.format("late"), UserWarning, 9): True})
    assert find_first() == CUT
    modules["__main__"].__warningregistry__ = {(TEXT.format("d"), UserWarning, 9): True}
    assert find_first() == ["aten::d", ""]


def test_the_main_script_and_the_newest_modules_are_looked_at_first(
    modules, add_module, monkeypatch
):
    monkeypatch.setattr(fallback_warnings, "MAX_SECONDS", -1.0)
    for number in range(100):
        add_module(f"old{number}")
    assert find_first() == CUT
    add_module("new", {(TEXT.format("b"), UserWarning, 9): True})
    assert find_first() == ["aten::b", ""]
    modules["__main__"].__warningregistry__ = {(TEXT.format("a"), UserWarning, 9): True}
    assert find_first() == ["aten::a", ""]
    del modules["__main__"].__warningregistry__
    for number in range(100):
        add_module(f"newer{number}")
    assert find_first() == CUT
    modules["torch.nn.functional"] = modules["new"]
    for number in range(100):
        add_module(f"newest{number}")
    assert find_first() == ["aten::b", ""]


def test_the_modules_that_are_looked_at_first_are_torchs():
    (folder,) = importlib.util.find_spec("torch").submodule_search_locations
    for name in fallback_warnings._FIRST[1:]:
        package, *rest = name.split(".")
        place = Path(folder, *rest)
        assert package == "torch"
        assert place.with_suffix(".py").is_file() or (place / "__init__.py").is_file(), name


def test_texts_of_torch():
    assert is_fallback(TEXT)
    assert not is_fallback("falls to the CPU")
    assert name_operation("linalg_qr: MPS implementation falls back to CPU") == "linalg_qr"
    assert len(name_operation("x" * 5000)) == 200
