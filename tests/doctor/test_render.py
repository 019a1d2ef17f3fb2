"""What `mpsbar doctor` prints, as a whole; and that there is a sentence for every code."""

import ast
import json
from pathlib import Path

import pytest

import mpsbar
from mpsbar.core.findings import Reason
from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Machine, Problem, Process
from mpsbar.core.snapshot import Snapshot
from mpsbar.doctor.render import build_doctor_json, render_doctor, render_progress
from mpsbar.doctor.rules import STAGES, Device, DoctorReport, build_doctor_report
from mpsbar.doctor.text import sentence, sentences, stages

PACKAGE = Path(mpsbar.__file__).parent
MAC = Machine(
    os="macOS 14.7", os_version=(14, 7), model="Mac14,12", chip="Apple M2 Pro", memory_total=16 << 30,
    gpu=Gpu(name="Apple M2 Pro"),
)  # fmt: skip
ARM = {"version": "3.12.4", "architecture": "arm64", "system": "darwin", "mps_built": True}
DOCTOR_REPORT = build_doctor_report(
    Snapshot(
        1700000000.0,
        machine=MAC,
        processes=(
            Process(4711, 0.0, "train.py", ("torch",), settings={"PYTORCH_MPS_PREFER_METAL": "0"}),
        ),
        problems=(Problem("gpu", "IOKit said no\x1b[31m"),),
    ),
    (
        Device("/Users/ada/v/bin/python", "ok", torch="2.13.0", mps_available=True, chosen="mps", computed=8.0,
               settings={"PYTORCH_ENABLE_MPS_FALLBACK": "1"}, **ARM),
        Device("/Users/ada/new/bin/python", "ok", torch="2.15.0", mps_available=False, chosen="cpu", computed=8.0, **ARM),
        Device("/Users/ada/x/bin/python", "crashed", stage="import", signal="SIGABRT", version="3.10.1",
               torch="2.1.0", error="dlopen(/Users/ada/x/lib/libc10.dylib)"),
        Device("/opt/gone/bin/python", "no_python"),
        Device("/usr/bin/python3", "no_torch", version="3.9.6"),
    ),
    left_out=("/a", "/b"),
)  # fmt: skip

SHOWN = """\
Apple M2 Pro · Mac14,12 · 16.0 GB · macOS 14.7
couldn't read gpu: IOKit said no�[31m

~/v/bin/python
  Python 3.12.4 · arm64 · torch 2.13.0 · MPS available
  PYTORCH_ENABLE_MPS_FALLBACK=1
  warning   torch 2.13.0 on Apple M2 Pro: matmul over more than 32768 elements can be silently wrong (pytorch issue 193487); fixed in 2.14
  note      mps is the first available of cuda, mps and cpu; a small computation on it works
  note      PYTORCH_ENABLE_MPS_FALLBACK is on: operations that MPS lacks run on the CPU, which is slower, and only the first one prints a warning. It is read when torch is imported; setting os.environ after that is too late

~/new/bin/python
  Python 3.12.4 · arm64 · torch 2.15.0 · MPS built, not available
  warning   no MPS: torch 2.15.0 requires macOS 15; this is 14.7
  note      cpu is the first available of cuda, mps and cpu; a small computation on it works

~/x/bin/python
  Python 3.10.1 · torch 2.1.0
  critical  crashed with SIGABRT while importing torch: dlopen(~/x/lib/libc10.dylib)

/opt/gone/bin/python
  warning   there is no Python at this path

train.py (4711)
  warning   PYTORCH_MPS_PREFER_METAL=0 turns it on: any value does

/usr/bin/python3: Python 3.9.6, no torch
2 more Pythons were not checked; use --python PATH to check one

5 problems found."""


def test_the_whole_text():
    assert render_doctor(DOCTOR_REPORT, "/Users/ada") == SHOWN


def test_the_whole_json():
    record = json.loads(json.dumps(build_doctor_json(DOCTOR_REPORT), allow_nan=False))
    assert list(record) == [
        "schema", "machine", "pythons", "processes", "problems", "left_out", "icon", "alerts",
    ]  # fmt: skip
    assert (record["schema"], record["machine"]["chip"]) == (1, "Apple M2 Pro")
    first, new, crashed, gone, without = record["pythons"]
    assert first["python"] == "/Users/ada/v/bin/python"  # programs need the real path
    assert (first["chosen"], first["works"], first["mps_available"]) == ("mps", True, True)
    assert new["reasons"][0] == {
        "code": "mps_macos_too_old",
        "level": "warning",
        "values": {"torch": "2.15.0", "needed": "15", "have": "14.7"},
        "text": "no MPS: torch 2.15.0 requires macOS 15; this is 14.7",
    }
    assert (crashed["ended"], crashed["stage"], crashed["works"]) == ("crashed", "import", None)
    assert (gone["ended"], without["ended"]) == ("no_python", "no_torch")
    assert record["processes"][0]["pid"] == 4711
    assert record["problems"] == [{"reader": "gpu", "text": "IOKit said no\x1b[31m"}]


def test_what_does_not_work_is_not_called_working():
    failed = Device("p", "ok", compute_error="RuntimeError: x", chosen="mps")
    (record,) = build_doctor_json(build_doctor_report(Snapshot(0.0), (failed,)))["pythons"]
    assert record["works"] is False


def test_a_report_of_a_machine_that_is_hardly_known():
    assert render_doctor(DoctorReport(Machine())) == (
        "no information about this computer\n\n"
        "No torch was found. To check a specific Python: mpsbar doctor --python PATH"
    )
    fine = build_doctor_report(Snapshot(0.0), (Device("/p", "ok", chosen="cpu", computed=8.0),))
    assert render_doctor(fine).endswith("\n\nNo problems found.")
    blind = Snapshot(0.0, problems=(Problem("gpu", "broken"),))
    fine = build_doctor_report(blind, (Device("/p", "ok", chosen="cpu", computed=8.0),))
    assert render_doctor(fine).endswith("\n\nNo other problems found.")
    assert render_progress(1, 3) == "checking 3 Pythons: 1 done"
    assert render_progress(0, 1) == "checking 1 Python: 0 done"


def test_a_home_at_the_root_is_not_everywhere():
    assert render_doctor(DOCTOR_REPORT, "/").count("~") == 0
    assert render_doctor(DOCTOR_REPORT, None).count("~") == 0
    # /v is somebody's home, and not the /v of another's.
    assert "~" not in render_doctor(DOCTOR_REPORT, "/v")


def literals(file, name):
    """The codes that a module makes values of."""
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {
        call.args[0].value
        for call in calls
        if getattr(call.func, "id", "") == name and isinstance(call.args[0], ast.Constant)
    }


# Those whose code is worked out: how a look ended, and either of two.
COMPUTED = {
    "no_python", "not_python", "unsafe", "crashed", "exited", "hung", "mps_rosetta", "mps_intel",
    "watermark_low_above_high", "watermark_high_alone",
}  # fmt: skip


def test_there_is_a_sentence_for_every_code_and_none_too_many():
    made = literals("doctor/rules.py", "Reason") | literals("core/torch_facts.py", "Reason")
    assert made | COMPUTED == set(sentences())
    assert set(stages()) == set(STAGES)


def test_an_unknown_code_is_shown_as_it_is():
    assert sentence(Reason("news", "ok", {"error": "x"})) == "news: x"


# What a typical guide says about PyTorch on a Mac, and where mpsbar answers it.
GUIDE = [
    ("mps instead of cuda; cuda, then mps, then cpu", "device", {"device_works", "compute_failed"}),
    ("MPS since 1.12; 2.1+; newer is better", "device", {"torch_too_old", "newer_torch", "mps_macos_too_old"}),
    ("float32 is the safest", "advice", {"float32"}),
    ("float16 is limited", "later: probe", set()),
    ("bfloat16 is unsupported", "device", {"bfloat16_needs_torch", "bfloat16_needs_macos"}),
    ("int32 and int64 are limited by operation", "later: probe", set()),
    ("safe pattern: device and float32", "function", {"get_device", "safe_dtype"}),
    ("small batches, shorter inputs", "advice", {"smaller_batch", "shorter_input"}),
    ("del, gc.collect(), empty_cache()", "advice", {"free_cache", "free_all"}),
    ("is_available() and is_built()", "device", {"mps_not_built", "mps_unavailable", "mps_virtual"}),
    ("unsupported operations fall back to the CPU", "device", {"fallback_on"}),
    ("Activity Monitor, Instruments, torch.profiler", "advice", {"activity_monitor", "instruments", "torch_profiler"}),
    ("inference: Core ML, ONNX", "advice", {"core_ml_or_mlx"}),
]  # fmt: skip


@pytest.mark.parametrize(("claim", "place", "codes"), GUIDE, ids=[row[0] for row in GUIDE])
def test_every_line_of_the_guides_has_its_place(claim, place, codes):
    have = {
        "device": set(sentences()),
        "advice": literals("core/advice.py", "Advice"),
        "function": set(mpsbar.__all__),
        "later: probe": set(),
    }[place]
    assert codes <= have


def test_a_recorded_machine_is_marked():
    shown = render_doctor(DoctorReport(Machine(chip="Apple M1", recording="an M1")))
    assert shown.splitlines()[0] == "Apple M1 · RECORDED"
