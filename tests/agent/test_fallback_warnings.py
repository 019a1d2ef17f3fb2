"""The first operation that torch warned of, read from what Python notes of warnings."""

import importlib.util
import sys
import types

import pytest

from mpsbar.agent import fallback_warnings
from mpsbar.agent.fallback_warnings import find_first, is_fallback, name_operation

TEXT = "The operator 'aten::{}' is not currently supported on the MPS backend and will fall back to run on the CPU."


@pytest.fixture
def add_module(monkeypatch):
    def add(name, registry=None, module=None, **names):
        module = module or types.ModuleType(name)
        if registry is not None:
            names["__warningregistry__"] = registry
        module.__dict__.update(names)
        monkeypatch.setitem(sys.modules, name, module)
        return module

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


def test_a_module_that_is_loaded_late_stays_so(add_module, tmp_path, monkeypatch):
    (tmp_path / "late.py").write_text("raise SystemExit('loaded')\n")
    spec = importlib.util.spec_from_file_location("late", tmp_path / "late.py")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "late", module)
    monkeypatch.setitem(sys.modules, "none at all", None)
    add_module("found", {(TEXT.format("b"), UserWarning, 9): True})
    assert find_first() == ["aten::b", ""]


def test_the_main_script_has_lost_its_file_by_then(add_module):
    loader = types.SimpleNamespace(path="/w/train.py")
    add_module(
        "script", {(TEXT.format("c"), UserWarning, 9): True}, __loader__=loader, __file__=None
    )
    assert find_first() == ["aten::c", "/w/train.py:9"]


def test_however_much_a_host_has_warned_little_is_looked_at(add_module, monkeypatch):
    monkeypatch.setattr(fallback_warnings, "_MOST_NOTES", 50)
    add_module("long", {("x" * 1001 + TEXT.format("far"), UserWarning, 9): True})
    assert find_first() is None
    add_module("other", {(TEXT.format("d"), UserWarning, 9): True})
    assert find_first() == ["aten::d", ""]
    noise = {(f"loss {n}", UserWarning, 1): True for n in range(50)}
    add_module("long", {**noise, (TEXT.format("late"), UserWarning, 9): True})
    assert find_first() is None


def test_texts_of_torch():
    assert is_fallback(TEXT)
    assert not is_fallback("falls to the CPU")
    assert name_operation("linalg_qr: MPS implementation falls back to CPU") == "linalg_qr"
    assert len(name_operation("x" * 5000)) == 200
