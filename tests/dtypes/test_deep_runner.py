"""The deep probe for real: torch's own samples on softmps and on the CPU, with planted faults."""

import ast
import json
import os
import resource
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from fake_torch import add_startup, make_torch
from probe_kit import needs_mps
from worker_kit import ROOT, TIMEOUT, need_module

from mpsbar.dtypes import deep_child, deep_files
from mpsbar.dtypes.deep_results import DTYPES
from mpsbar.dtypes.deep_runner import DeepRunner

# The import of torch and of its samples, on a busy machine.
pytestmark = [
    pytest.mark.timeout(20 * TIMEOUT),
    pytest.mark.starts_processes,
    pytest.mark.xdist_group("samples"),  # one process that has them serves all
]


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path, fork_deep_children):
    for name in list(os.environ):
        if name.startswith(("SOFTMPS_FAULTS", "PYTORCH_", "PYTHONPATH")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(deep_files.paths, "probe_folder", lambda: tmp_path / "probes")


def probe(only, device="mps", **options):
    options.setdefault("children", 1)
    runner = DeepRunner([sys.executable], device, only=only, **options)
    shown = []
    found = runner.run(shown.append)
    return found, {f"{c.operation}/{c.dtype}": c for c in found.cells}, shown


@needs_mps
def test_planted_faults_are_news_of_their_cell(monkeypatch):
    monkeypatch.setenv("SOFTMPS", "1")
    monkeypatch.setenv(
        "SOFTMPS_FAULTS",
        "wrong cumsum float16; abort cumsum int8; refuse:unimplemented cumsum int32; fallback cumsum float32; "
        "hang cumsum int16",
    )
    # Long enough for a kernel on a busy machine; the planted hang is endless.
    found, cells, shown = probe("cumsum", cell_seconds=30.0)
    assert (found.ended, found.torch, found.total) == ("ok", "2.13.0+cpu", 12)
    assert set(cells) == {f"cumsum/{dtype}" for dtype in DTYPES}
    worse = {f"{c.operation}/{c.dtype}": c.state for c in found.find_news("worse")}
    assert worse == {
        "cumsum/float16": "inaccurate", "cumsum/int8": "crashed", "cumsum/int32": "unsupported",
        "cumsum/float32": "fallback", "cumsum/int16": "hung",
    }  # fmt: skip
    assert "not currently implemented for the MPS device" in cells["cumsum/int32"].text
    assert cells["cumsum/int8"].text == "SIGABRT"
    # float64 is known: torch expects no more.
    known = cells["cumsum/float64"]
    assert (known.state, known.expected, known.news) == ("unsupported", False, None)
    assert cells["cumsum/int64"].state == "works"
    assert shown[0].total is None
    assert (shown[-1].done, shown[-1].total) == (12, 12)


# The last because this is no macOS 14.4 or later.
LISTS = (
    "UNIMPLEMENTED_XFAILLIST",
    "UNDEFINED_XFAILLIST",
    "ON_MPS_XFAILLIST",
    "MACOS_BEFORE_14_4_XFAILLIST",
)
SKIPPED = ("SKIPLIST", "EMPTY_OPS_SKIPLIST")
EXPECTATIONS = """
import json, torch
from mpsbar.dtypes import deep_child
from mpsbar.dtypes.deep_results import DTYPES
database = deep_child._load_database()
expect = deep_child._read_expectations(torch, database, "mps")
found = []
for operation in database:
    supported = {str(dtype)[6:] for dtype in operation.supported_dtypes("mps")}
    key, of = operation.name + operation.variant_test_name, expect(operation)
    found += [(key, dtype, dtype in supported, of(dtype)) for dtype in DTYPES]
print(json.dumps(found))
"""


def read_torchs_lists():
    """The lists in the source of torch's tests for MPS, by another way than the probe's: dtypes by operation."""
    torch = Path(find_spec("torch").origin).parent  # not imported
    tree = ast.parse((torch / "testing" / "_internal" / "common_mps.py").read_text())
    function = next(
        n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "mps_ops_modifier"
    )
    lists = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                lists[target.id] = node.value
    return {
        name: {
            ast.literal_eval(key): None
            if isinstance(value, ast.Constant)
            else {d.attr for d in value.elts}
            for key, value in zip(lists[name].keys, lists[name].values, strict=True)
        }
        for name in (*LISTS, *SKIPPED)
    } | {"complex": set(ast.literal_eval(lists["SUPPORTED_COMPLEX_OPS"]))}


@needs_mps
def test_what_torch_expects_is_in_its_own_lists(workers):
    """Every operation and dtype, against the source of torch's tests for MPS."""
    env = workers.env(SOFTMPS="1", PYTHONPATH=str(ROOT))
    command = [sys.executable, "-c", EXPECTATIONS]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=10 * TIMEOUT)
    assert done.returncode == 0, done.stderr
    lists = read_torchs_lists()

    def is_in(name, key, dtype):
        dtypes = lists[name].get(key, ())
        return dtypes is None or dtype in dtypes

    counts, wrong = Counter(), []
    for key, dtype, is_supported, expected in json.loads(done.stdout):
        fails = any(is_in(name, key, dtype) for name in LISTS) or dtype in ("float64", "complex128")
        fails |= dtype in ("complex64", "complex32") and key not in lists["complex"]
        skipped = any(is_in(name, key, dtype) for name in SKIPPED)
        wanted = False if fails or not is_supported else None if skipped else True
        counts[wanted] += 1
        if expected is not wanted:
            wrong.append((key, dtype, expected, wanted))
    assert wrong == []
    assert min(counts[False], counts[True]) > 1000
    assert counts[None] > 10


@needs_mps
def test_a_failure_in_torchs_own_list_is_known_and_its_success_is_news(monkeypatch):
    monkeypatch.setenv("SOFTMPS", "1")
    found, cells, _ = probe("put")
    assert cells["put/float32"].expected is False
    assert (cells["put/float32"].state, cells["put/float32"].news) == ("works", "better")
    monkeypatch.setenv("SOFTMPS_FAULTS", "refuse:unimplemented put_ *; refuse:unimplemented put *")
    found, cells, _ = probe("put")
    assert (cells["put/float32"].state, cells["put/float32"].news) == ("unsupported", None)
    assert found.find_news("worse") == []


def test_on_the_cpu_it_is_torchs_own_list(tmp_path):
    """In two child processes; random numbers and uninitialised memory are no news."""
    need_module("torch")
    found, cells, _ = probe("*empty*", "cpu", children=2)
    assert found.ended == "ok"
    assert found.find_news("worse") == []
    assert {c.state for c in found.cells} <= {"works", "meaningless", "unsupported"}
    assert cells["empty_like/float32"].expected is True
    assert not (tmp_path / "probes").exists()  # --only keeps nothing


@needs_mps
def test_random_operations_and_wide_results_are_not_accused(monkeypatch):
    monkeypatch.setenv("SOFTMPS", "1")
    found, cells, _ = probe("[bnr]*r[mna]*")
    assert [c for c in found.cells if c.state in ("inaccurate", "unknown")] == []
    assert len(cells) > 24


def test_memory_that_grows_ends_a_child_and_not_the_probe():
    need_module("torch")
    found, _, _ = probe("m[mv]", "cpu", ceiling=-1 << 40)
    assert (found.ended, len(found.cells)) == ("ok", 24)


def test_cancelled_then_resumed(monkeypatch, tmp_path):
    """As Ctrl-C does it: what was measured is kept, and the next run goes on from there."""
    need_module("torch")
    first = DeepRunner([sys.executable], "cpu", children=1)
    found = first.run(lambda done: first.cancel() if done.done > 50 else None)
    assert found.ended == "cancelled"
    kept = len(found.cells)
    assert 50 < kept < found.total
    (partial,) = (tmp_path / "probes" / "deep").iterdir()
    assert partial.name.endswith(".partial")
    second = DeepRunner([sys.executable], "cpu", children=1)
    again = second.run(lambda done: second.cancel() if done.done > kept + 50 else None)
    assert second.resumed == kept
    assert set(again.cells) >= set(found.cells)
    # Another torch, or a variable that changes the results: it begins again.
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    third = DeepRunner([sys.executable], "cpu", children=1)
    third.run(lambda done: third.cancel() if done.done else None)
    assert third.resumed == 0


@pytest.mark.parametrize(
    ("code", "ended", "words"),
    [
        ("raise ImportError('torn')", "broken_torch", "ImportError: torn"),
        ("import os; os.abort()", "crashed", None),
        ("import os; os._exit(3)", "exited", None),
        ("__version__ = '9.9'", "no_device", None),
    ],
)
def test_a_torch_that_does_not_work(tmp_path, code, ended, words, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", make_torch(tmp_path, code))
    found, _, _ = probe("mm", "cpu")
    assert (found.ended, found.cells) == (ended, ())
    if words:
        assert words in found.error


def test_noise_of_a_start_up_file_hides_nothing(tmp_path, monkeypatch):
    need_module("torch")
    monkeypatch.setenv("PYTHONPATH", add_startup(tmp_path, "print('hello ' * 5000)"))
    found, _, _ = probe("mm", "cpu")
    assert (found.ended, len(found.cells)) == ("ok", 12)


def test_one_operation_is_not_shared_by_several_processes(tmp_path, monkeypatch):
    """Each would import torch and its samples, and all but one would have nothing to do."""
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    for only, count in (("mm", 1), ("m?", 4), ("[am]*", 4), (None, 4)):
        counter = tmp_path / f"starts {count} {only == 'm?'}"
        script = tmp_path / "python"
        script.write_text(f"#!/bin/sh\necho start >> '{counter}'\n")
        script.chmod(0o755)
        DeepRunner([str(script)], "cpu", only=only).run(lambda _: None)
        assert counter.read_text().count("start") == 2 * count  # each is tried twice
        counter.unlink()


def test_no_such_python():
    runner = DeepRunner(["/no/such/python"], "cpu")
    assert runner.run(lambda _: None).ended == "no_python"


def test_the_memory_of_a_child_on_a_mac_is_its_peak(monkeypatch):
    """There is no /proc there."""
    monkeypatch.setattr(deep_child.sys, "platform", "darwin")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert deep_child._read_memory(None, "cpu") >= peak > 0
