"""Which of several Pythons is taken, alike in `mpsbar probe`, `probe --deep` and `compare`."""

import sys
from types import SimpleNamespace

import pytest

from mpsbar.dtypes.compare_runner import CompareRunner
from mpsbar.dtypes.deep_runner import DeepRunner
from mpsbar.dtypes.first_python import run_in_first
from mpsbar.dtypes.runner import ProbeRunner


@pytest.mark.parametrize(
    ("ends", "chosen"),
    [
        ("ok", 0), ("no_python ok", 1), ("unsafe not_python no_torch ok crashed", 3),
        ("broken_torch ok", 0), ("crashed ok", 0), ("cancelled ok", 0), ("failed ok", 0),
        ("no_torch not_python unsafe unsafe no_python", 2), ("no_python no_torch not_python", 2),
        ("no_python no_torch", 1),
    ],
)  # fmt: skip
def test_the_first_that_has_torch_or_the_one_that_says_most(ends, chosen):
    run = []

    def probe(python):
        run.append(python)
        return SimpleNamespace(ended=ends.split()[python], python=python)

    assert run_in_first(range(len(ends.split())), probe).python == chosen
    assert run == list(range(len(run)))
    assert len(run) in (chosen + 1, len(ends.split()))


def test_no_python_at_all():
    assert run_in_first([], None) is None


def run_probe(pythons):
    return ProbeRunner(pythons, "cpu").run()


def run_deep(pythons):
    return DeepRunner(pythons, "cpu", only="no.such.operation", children=1).run(lambda _: None)


def run_compare(pythons):
    runner = CompareRunner(pythons, "/no/such/file.py", "make", {})
    return runner.run(lambda *_: None)


@pytest.mark.starts_processes
@pytest.mark.parametrize("run", [run_probe, run_deep, run_compare])
def test_what_cannot_or_may_not_be_run_is_told_if_there_is_no_other(tmp_path, run):
    missing, text, open_to_all = tmp_path / "none", tmp_path / "text", tmp_path / "open" / "python"
    text.write_text("hello")
    open_to_all.parent.mkdir()
    open_to_all.symlink_to(sys.executable)
    open_to_all.parent.chmod(0o777)
    pythons = [str(missing), str(text), str(open_to_all)]
    assert run(pythons[:1]).ended == "no_python"
    assert run(pythons[:2]).ended == "not_python"
    assert run(pythons[:2]).python == str(text)
    for order in (pythons, pythons[::-1]):
        assert (run(order).ended, run(order).python) == ("unsafe", str(open_to_all))
    # The next Python is tried, whatever comes of it there: here it is not one that may be run.
    assert run([*pythons, sys.executable]).python == sys.executable
