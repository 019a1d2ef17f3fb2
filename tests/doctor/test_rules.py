"""The verdict on one Python's torch: a table over torch, macOS and chip, none of which is here."""

from dataclasses import replace

import pytest

from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Machine, Process
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.doctor.rules import Device, build_doctor_report, judge_device, why_no_mps


def mac(version="15.3", chip="Apple M3", **fields):
    numbers = tuple(map(int, version.split(".")))
    gpu = fields.pop("gpu", Gpu(name=chip))
    return Machine(os=f"macOS {version}", os_version=numbers, chip=chip, gpu=gpu, **fields)


def device(torch="2.13.0", **fields):
    usual = {
        "version": "3.11.4", "architecture": "arm64", "system": "darwin", "translated": False,
        "torch_file": "/v/torch/__init__.py", "mps_built": True, "mps_available": True,
        "cuda_available": False, "chosen": "mps", "computed": 8.0,
    }  # fmt: skip
    return Device("/v/bin/python", "ok", torch=torch, **{**usual, **fields})


def unavailable(torch="2.13.0", **fields):
    return device(torch, **{"mps_available": False, "chosen": "cpu", **fields})


def codes(device, machine):
    return {reason.code for reason in judge_device(device, machine)}


def worries(device, machine):
    return {reason.code for reason in judge_device(device, machine) if reason.level != "ok"}


@pytest.mark.parametrize(
    ("torch", "macos", "needed"),
    [
        ("1.12.1", "12.2", "12.3"), ("2.4.1", "12.2", "12.3"), ("2.4.1", "12.3", None),
        ("2.5.0", "12.7", "13"), ("2.8.0", "12.7", "13"), ("2.8.0", "13.0", None),
        ("2.9.0", "13.7.4", "14"), ("2.9.0", "14.0", None), ("2.14.1", "13.6", "14"),
        ("2.14.1", "14.0", None), ("2.15.0", "14.7", "15"), ("2.15.0", "15.0", None),
        ("2.15.0", "26.3.2", None), ("2.15.0a0+git12ab", "14.7", "15"), ("3.0", "14.7", "15"),
    ],
)  # fmt: skip
def test_which_macos_each_torch_needs(torch, macos, needed):
    reason = why_no_mps(unavailable(torch), mac(macos))
    assert reason is not None
    if needed is None:
        assert (reason.code, reason.level) == ("mps_unavailable", "warning")
        assert reason.values == {"gpu": "Apple M3"}
    else:
        assert (reason.code, reason.level) == ("mps_macos_too_old", "warning")
        assert reason.values == {"torch": torch, "needed": needed, "have": macos}


@pytest.mark.parametrize(
    ("seen", "machine", "code"),
    [
        (unavailable(), mac(is_virtual=True), "mps_virtual"),
        (unavailable(), mac(gpu=Gpu()), "mps_no_gpu"),
        (unavailable(), Machine(), "mps_unavailable"),
        (unavailable(mps_built=False), mac(), "mps_not_built"),
        (unavailable(mps_error="RuntimeError: x", mps_available=None), mac(), "mps_check_failed"),
        (unavailable(architecture="x86_64", translated=True), mac(), "mps_rosetta"),
        (unavailable(architecture="x86_64", translated=True), Machine(), "mps_rosetta"),
        (unavailable(architecture="x86_64", translated=None), mac(), "mps_rosetta"),
        (unavailable(architecture="x86_64", mps_built=False), mac(chip="Intel(R) Core(TM) i7"), "mps_intel"),
        (unavailable("2.9.0", os_version=(13, 1)), Machine(), "mps_macos_too_old"),
        # A Python built long ago reads 10.16 on every macOS since 11.
        (unavailable("2.9.0", os_version=(10, 16)), Machine(), "mps_unavailable"),
        (unavailable("2.9.0", os_version=(10, 16)), mac("13.1"), "mps_macos_too_old"),
        (unavailable(system="linux", mps_built=False, architecture="x86_64"), Machine(), "mps_not_on_this_system"),
        (unavailable("from source"), mac("12.0"), "mps_unavailable"),
    ],
)  # fmt: skip
def test_why_there_is_no_mps(seen, machine, code):
    reason = why_no_mps(seen, machine)
    assert reason is not None
    assert reason.code == code


def test_where_mps_is_there_or_nothing_is_known_there_is_no_why():
    assert why_no_mps(device(), mac("12.0")) is None
    assert why_no_mps(Device("p", "no_torch"), mac()) is None
    assert why_no_mps(unavailable(mps_available=None), mac()) is None
    # An Intel Mac whose AMD GPU torch takes.
    assert why_no_mps(device("2.2.2", architecture="x86_64"), mac(chip="Intel")) is None


@pytest.mark.parametrize("torch", ["2.6.0", "2.7.0", "2.10.0", "2.13.1", "2.14.0", "2.15.0"])
@pytest.mark.parametrize("chip", ["Apple M1", "Apple M2 Ultra", "Apple M3", "Apple M14 Max", None])
def test_the_long_matmul_of_m1_and_m2(torch, chip):
    affected = torch in ("2.7.0", "2.10.0", "2.13.1") and chip in ("Apple M1", "Apple M2 Ultra")
    assert worries(device(torch), mac(chip=chip)) == ({"long_matmul_wrong"} if affected else set())
    assert worries(device(torch), mac(chip=chip, is_virtual=True)) == set()


@pytest.mark.parametrize(
    ("torch", "macos", "python", "expected"),
    [
        ("1.13.1", "15.0", "3.11.4", {"torch_too_old", "bfloat16_needs_torch", "newer_torch"}),
        ("2.0.1", "14.0", "3.10.2", {"torch_too_old", "bfloat16_needs_torch", "newer_torch"}),
        ("2.2.2", "13.0", "3.11.4", {"bfloat16_needs_torch"}),
        ("2.4.0", "13.0", "3.11.4", {"bfloat16_needs_macos"}),
        ("2.4.0", "14.0", "3.9.1", set()),
        ("2.8.0", "14.0", "3.10.1", {"newer_torch"}),
        ("2.12.0", "26.1", "3.12.1", {"newer_torch"}),
        ("2.13.0", "26.1", "3.12.1", set()),
        ("2.15.0", "14.7", "3.12.1", {"macos_below_stated"}),
        ("2.15.0", "15.0", "3.12.1", set()),
    ],
)  # fmt: skip
def test_torch_against_macos_and_python(torch, macos, python, expected):
    assert codes(device(torch, version=python), mac(macos)) - {"device_works"} == expected


def test_what_is_chosen_and_whether_it_works():
    assert judge_device(device(), mac())[0].values == {"device": "mps"}
    failed = device(computed=None, compute_error="RuntimeError: x")
    (reason,) = judge_device(failed, mac())
    assert (reason.code, reason.level) == ("compute_failed", "critical")
    assert reason.values == {"device": "mps", "error": "RuntimeError: x"}
    assert worries(device(computed=7.0), mac()) == {"compute_wrong"}
    assert worries(device(computed=float("nan")), mac()) == {"compute_wrong"}
    assert worries(device(cuda_error="x"), mac()) == {"cuda_check_failed"}
    assert worries(device(torch_preloaded=True), mac()) == {"torch_preloaded"}


@pytest.mark.parametrize(
    ("ended", "level"),
    [
        ("no_torch", "ok"), ("no_python", "warning"), ("not_python", "warning"),
        ("unsafe", "warning"), ("broken_torch", "critical"), ("crashed", "critical"), ("exited", "critical"), ("hung", "critical"),
    ],
)  # fmt: skip
def test_how_an_inspection_ended_is_a_reason(ended, level):
    assert [(r.code, r.level) for r in judge_device(Device("p", ended), mac())] == [(ended, level)]


def test_settings_count_where_torch_could_use_mps():
    bad = {"PYTORCH_MPS_HIGH_WATERMARK_RATIO": "7"}
    assert worries(device(settings=bad), mac()) == {"watermark_out_of_range"}
    linux = unavailable(system="linux", mps_built=False, settings=bad)
    assert worries(linux, Machine(os="Debian")) == set()
    # A torch that went down on a Mac before it could say: a setting may be why.
    down = Device("p", "crashed", system="darwin", torch_file="t", settings=bad, stage="import")
    assert worries(down, mac()) == {"crashed", "watermark_out_of_range"}
    assert worries(replace(down, torch_file=None, ended="no_torch"), mac()) == set()


def test_the_worst_comes_first():
    seen = device(
        "2.7.0", settings={"PYTORCH_MPS_FAST_MATH": "1"}, computed=None, compute_error="x"
    )
    levels = [reason.level for reason in judge_device(seen, mac(chip="Apple M1"))]
    assert levels == ["critical", "warning", "ok", "ok"]


def test_each_environment_is_listed_once():
    first = Device("/shim/python3", "no_torch", prefix="/usr", version="3.11.2")
    devices = (
        first,
        replace(first, python="/usr/bin/python3"),
        replace(first, python="/usr/bin/python3.9", version="3.9.1"),
        Device("/a", "no_python"),
        Device("/b", "no_python"),
    )
    pythons = [seen.python for seen, _ in build_doctor_report(Snapshot(0.0), devices).pythons]
    assert pythons == ["/shim/python3", "/usr/bin/python3.9", "/a", "/b"]


def test_running_processes_are_judged_by_what_they_were_started_with():
    typo = {"PYTORCH_MPS_TELEPORT_X": "1"}
    processes = (
        Process(1, 0.0, "a.py", ("torch",), settings=typo),
        Process(2, 0.0, "b.py", ("torch",), settings={"PYTORCH_ENABLE_MPS_FALLBACK": "yes"}),
        Process(3, 0.0, "c.py", ("mlx",), settings=typo),
        Process(4, 0.0, "d.py", ("torch",)),
    )
    worker = Worker(1, "a.py", "live", 0.0, frameworks={"torch": "2.13.0"})
    snapshot = Snapshot(0.0, (worker,), mac(), processes)
    report = build_doctor_report(snapshot, ())
    assert [(p.pid, [r.code for r in rs]) for p, rs in report.processes] == [
        (1, ["setting_unknown"]),
        (2, ["fallback_unclear"]),
    ]
    assert [reason.code for reason in report.torch_problems] == ["fallback_unclear"]
    linux = replace(snapshot, machine=Machine(os="Debian GNU/Linux 12"))
    assert build_doctor_report(linux, ()).processes == ()
    assert build_doctor_report(replace(snapshot, processes=None), ()).processes == ()
