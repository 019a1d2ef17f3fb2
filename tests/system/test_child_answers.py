"""What scripts share that run in other Pythons: their start, and lines that are answers."""

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace

import interpreters
import pytest
from worker_kit import TIMEOUT

import mpsbar
from mpsbar.agent import fallback_warnings
from mpsbar.system import child_answers
from mpsbar.system.child_answers import describe

SCRIPT = """
import sys
from mpsbar.system.child_answers import guard, send, take_stdout
wire = take_stdout(INSTEAD)
print("noise", flush=True)
send(wire, "> ", "start", {"argv": sys.argv[1:], "name": __name__, "file": __file__})
send(wire, "> ", "failed", guard(lambda: 1 / 0, "unknown"))
send(wire, "> ", "exited", guard(lambda: sys.exit("bye"), "unknown"))
send(wire, "> ", "large", {"text": "x" * 200_000})
"""


def run(tmp_path, version, instead="", **variables):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("INSTEAD", instead))
    done = subprocess.run(
        [interpreters.need(version), "-B", child_answers.__file__, str(script), "more"],
        env=variables, cwd="/", capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line[2:] for line in done.stdout.split("\n") if line.startswith("> ")]
    return {answer.pop("stage"): answer for answer in map(json.loads, lines)}, done


@pytest.mark.parametrize("version", interpreters.VERSIONS)
def test_a_script_answers_in_a_python_that_has_no_mpsbar(tmp_path, version):
    answers, done = run(tmp_path, version)
    file = str(tmp_path / "script.py")
    assert answers["start"] == {"argv": ["more"], "name": "__main__", "file": file}
    assert answers["failed"] == {"state": "unknown", "text": "ZeroDivisionError: division by zero"}
    assert answers["exited"] == {"state": "unknown", "text": "SystemExit: bye"}
    assert len(answers["large"]["text"]) == 200_000
    assert "noise" not in done.stdout + done.stderr


def test_what_others_print_can_go_to_stderr(tmp_path):
    _, done = run(tmp_path, "3.11", "instead=2")
    assert (done.stderr, "noise" in done.stdout) == ("noise\n", False)


def test_another_mpsbar_of_that_python_is_not_taken(tmp_path):
    (tmp_path / "mpsbar").mkdir()
    (tmp_path / "mpsbar" / "__init__.py").write_text("raise SystemExit('the other one')")
    answers, _ = run(tmp_path, "3.11", PYTHONPATH=str(tmp_path))
    assert list(answers) == ["start", "failed", "exited", "large"]


def test_any_exception_is_one_short_line():
    class UnreadableError(Exception):
        def __str__(self):
            raise ValueError

    assert describe(UnreadableError()) == "UnreadableError: ?"
    assert describe(ValueError("one\n  two")) == "ValueError: one two"
    assert len(describe(ValueError("x" * 10_000))) == 600


def make_old_torch(started, **modules):
    """torch from before it knew MPS, unless `modules` bring it; notes what is started where."""

    def ones(_number, device):
        started.append(device)
        return SimpleNamespace(sum=lambda: SimpleNamespace(item=lambda: 1.0))

    return SimpleNamespace(
        ones=ones, set_num_threads=lambda _: None, set_warn_always=lambda _: None, **modules
    )


@pytest.mark.parametrize(
    ("there", "wanted", "device"),
    [
        ({}, "auto", "cpu"), ({}, "cpu", "cpu"), ({}, "mps", None), ({}, "cuda", None),
        ({}, "tpu", None), ({"mps": False}, "auto", "cpu"), ({"mps": True}, "auto", "mps"),
        ({"mps": True}, "cpu", "cpu"), ({"mps": True, "cuda": True}, "auto", "cuda"),
        ({"mps": True, "cuda": False}, "cuda", None),
    ],
)  # fmt: skip
def test_the_device_of_any_torch(there, wanted, device):
    kinds = {name: SimpleNamespace(is_available=lambda v=v: v) for name, v in there.items()}
    backends = SimpleNamespace(**{k: v for k, v in kinds.items() if k == "mps"})
    others = {k: v for k, v in kinds.items() if k == "cuda"}
    started = []
    torch = make_old_torch(started, backends=backends, **others)
    assert child_answers.start_device(torch, wanted) == device
    assert started == [device] * (device is not None)


def test_a_fallback_is_known_by_the_same_words_everywhere():
    """The agent, the probes and compare can import nothing of each other."""
    whole_run = Path(mpsbar.__file__).parent / "dtypes" / "compare" / "whole_run.py"
    pattern = child_answers.FALLBACK.pattern
    assert (
        f'_FALLBACK = re.compile(r"{pattern}", re.IGNORECASE | re.DOTALL)' in whole_run.read_text()
    )
    assert f"(?s).*{pattern}" == fallback_warnings.PATTERN
