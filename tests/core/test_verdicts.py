"""One verdict from the evidence of an end, and never more certain than it."""

import json
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import GB

from mpsbar.core.advice import advise_end
from mpsbar.core.endings import (
    CrashReport,
    EndEvidence,
    ExitStatus,
    GpuEvent,
    LastWords,
    Panic,
    RaisedError,
    SystemReports,
)
from mpsbar.core.fallbacks import FallbackOperation, Fallbacks
from mpsbar.core.verdicts import (
    END_KINDS,
    EndCode,
    build_verdict_json,
    judge_end,
    parse_verdict_json,
)

MPS = (
    "MPS backend out of memory (MPS allocated: 20.00 GiB, other allocations: 512.00 MiB, max allowed: "
    "27.20 GiB). Tried to allocate 8.00 GiB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0"
)


def words(kind=None, text="", is_main=True, **fields):
    error = None if kind is None else RaisedError(kind, text, "train.py:3", is_main)
    return LastWords(7, 100.0, 200.0, error, "train.py", **fields)


def judge(status=None, **fields):
    verdict = judge_end(EndEvidence(status=status, **fields))
    return verdict.code, verdict.sure, verdict.basis


def signal(number, **fields):
    return ExitStatus(signal=number, **fields)


CODE_1 = ExitStatus(code=1)


@pytest.mark.parametrize(
    ("status", "fields", "code", "sure", "basis"),
    [
        (ExitStatus(code=0), {}, "finished", "known", ("exit_status",)),
        (ExitStatus(code=3), {}, "exit_code", "known", ("exit_status",)),
        (ExitStatus(code=3), {"is_connected": True, "writes_exit_record": True},
         "exit_code", "known", ("exit_status", "no_last_words")),
        (CODE_1, {"words": words("ValueError", "x")}, "exception", "known", ("exit_status", "last_words")),
        # A prompt, a notebook or a failed test: nothing without a bad status, and likely with one.
        (ExitStatus(code=0), {"words": words("ValueError", "x", False)}, "finished", "known", ("exit_status",)),
        (CODE_1, {"words": words("ValueError", "x", False)}, "exception", "likely", ("exit_status", "last_words")),
        (None, {"words": words("ValueError", "x", False)}, "exited", "known", ("last_words",)),
        (None, {"words": words("ValueError", "x")}, "exception", "known", ("last_words",)),
        (None, {"words": words()}, "exited", "known", ("last_words",)),
        (None, {}, "unknown", "unknown", ()),
        (None, {"is_connected": True, "writes_exit_record": True}, "unknown", "unknown", ("no_last_words",)),
        (None, {"pressure": "critical"}, "unknown", "unknown", ("pressure",)),
        (None, {"stop_signal": "SIGINT"}, "stopped", "likely", ("stop_asked",)),
        (None, {"restarted": True}, "restarted", "likely", ("restart",)),
        (None, {"restarted": True, "reports": SystemReports(panic=Panic("watchdog"))},
         "panic", "likely", ("restart", "panic_report")),
        (None, {"reports": SystemReports(crash=CrashReport(6))}, "crashed", "known", ("crash_report",)),
        # A library may crash after Python has ended, and after its agent has left a record.
        (None, {"reports": SystemReports(crash=CrashReport(6)), "words": words()}, "crashed", "known", ("crash_report",)),
        (None, {"reports": SystemReports(crash=CrashReport(6)), "words": words("ValueError", "x")}, "exception", "known",
         ("last_words",)),
        (None, {"became": True}, "replaced", "known", ("still_running",)),
        (signal(2), {}, "interrupted", "known", ("exit_status",)),
        (signal(2), {"stop_signal": "SIGINT"}, "stopped", "known", ("stop_asked", "exit_status")),
        (signal(15), {}, "terminated", "known", ("exit_status",)),
        (signal(15), {"stop_signal": "SIGTERM"}, "stopped", "known", ("stop_asked", "exit_status")),
        (signal(15), {"parent_failed": "train.py rank 1 of 4 (9)"}, "other_rank", "likely", ("exit_status", "other_rank")),
        (ExitStatus(code=0), {"stop_signal": "SIGINT"}, "stopped", "likely", ("stop_asked", "exit_status")),
        (signal(9), {}, "killed", "known", ("exit_status",)),
        (signal(9), {"pressure": "warning", "swap_growth": GB // 2}, "killed", "known", ("exit_status",)),
        (signal(9), {"pressure": "critical"}, "killed_for_memory", "likely", ("exit_status", "pressure")),
        (signal(9), {"swap_growth": 2 * GB}, "killed_for_memory", "likely", ("exit_status", "swap")),
        # Linux counts such kills: where it counted none, critical pressure proves nothing.
        (signal(9), {"pressure": "critical", "reports": SystemReports(cgroup_kill=False)}, "killed", "known", ("exit_status",)),
        (signal(9), {"parent_failed": "train.py rank 1 of 4 (9)", "reports": SystemReports(cgroup_kill=False)},
         "other_rank", "likely", ("exit_status", "other_rank")),
        (signal(9), {"exit_reason": "low-swap"}, "killed_for_memory", "known", ("exit_status", "exit_reason")),
        (signal(9), {"reports": SystemReports(cgroup_kill=True)}, "killed_for_memory", "likely", ("exit_status", "cgroup")),
        (signal(9), {"reports": SystemReports(kernel_log=True)}, "killed_for_memory", "known", ("exit_status", "kernel_log")),
        (signal(9), {"reports": SystemReports(jetsam="per-process-limit")}, "killed_for_memory", "known",
         ("exit_status", "jetsam_report")),
        (signal(9, jetsam="low-swap"), {}, "killed_for_memory", "known", ("exit_status",)),
        (signal(9, code_signing=True), {}, "code_signing", "known", ("exit_status",)),
        (signal(11), {}, "crashed", "known", ("exit_status",)),
        (signal(6), {"gpu_reset": True}, "gpu_reset", "likely", ("exit_status", "gpu_recovery")),
        (signal(6), {"reports": SystemReports(gpu_event=GpuEvent(1.0, "Chrome", "lockup"))}, "gpu_reset", "likely",
         ("exit_status", "gpu_event")),
        # A reset does not explain a segmentation fault.
        (signal(11), {"gpu_reset": True}, "crashed", "known", ("exit_status",)),
        (signal(10), {"is_mac": True}, "crashed", "known", ("exit_status",)),
        (signal(10), {"is_mac": False}, "terminated", "known", ("exit_status",)),
        (signal(7), {"is_mac": False}, "crashed", "known", ("exit_status",)),
        (signal(40), {}, "terminated", "known", ("exit_status",)),
        (None, {"words": words("KeyboardInterrupt")}, "interrupted", "known", ("last_words",)),
    ],
)  # fmt: skip
def test_from_evidence_to_a_verdict(status, fields, code, sure, basis):
    assert judge(status, **fields) == (code, sure, basis)


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        ("RuntimeError", MPS, {"allocated": 20 * GB, "other": GB // 2, "limit": int(27.2 * GB), "tried": 8 * GB,
                               "at": 20 * GB + GB // 2}),
        ("RuntimeError", "Invalid buffer size: 64.00 GB", {"tried": 64 * GB, "at": 5 * GB}),
        ("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 20.00 MiB.", {"tried": 20 << 20, "at": 5 * GB}),
        ("MemoryError", "", {"at": 5 * GB}),
        ("numpy._core._exceptions._ArrayMemoryError", "Unable to allocate 8.00 GiB for an array", {"tried": 8 * GB, "at": 5 * GB}),
        ("RuntimeError", "[metal::malloc] Attempting to allocate 100 bytes which is greater than the maximum allowed "
         "buffer size of 64 bytes.", {"tried": 100, "limit": 64, "at": 5 * GB}),
        ("RuntimeError", "[malloc] Unable to allocate 4096 bytes.", {"tried": 4096, "at": 5 * GB}),
        ("jax.errors.JaxRuntimeError", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12.5MiB.",
         {"tried": 25 << 19, "at": 5 * GB}),
        ("XlaRuntimeError", "RESOURCE_EXHAUSTED: Out of memory allocating 4096 bytes.", {"tried": 4096, "at": 5 * GB}),
        ("RuntimeError", "[METAL] Command buffer execution failed: Insufficient Memory "
         "(00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory).", {"at": 5 * GB}),
        ("RuntimeError", "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 64 bytes.",
         {"tried": 64, "at": 5 * GB}),
    ],
)  # fmt: skip
def test_out_of_memory_in_the_frameworks_own_words(kind, text, values):
    evidence = EndEvidence(status=CODE_1, words=words(kind, text, memory={"held": 5 * GB}))
    verdict = judge_end(evidence)
    assert (verdict.code, verdict.sure) == ("out_of_memory", "known")
    known = {k: v for k, v in verdict.values.items() if k not in ("type", "text", "where", "code")}
    assert known == values


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)", "metal_timeout"),
        ("Caused GPU Hang Error (00000003:kIOGPUCommandBufferCallbackErrorHang)", "metal_timeout"),
        ("Ignored (for causing prior/excessive GPU errors) (00000004:kIOGPUCommandBufferCallbackErrorSubmissionsIgnored)",
         "submissions_ignored"),
        ("Discarded (victim of GPU error/recovery) (00000005:kIOGPUCommandBufferCallbackErrorInnocentVictim)", "gpu_reset"),
        ("Invalid Resource (00000009:kIOGPUCommandBufferCallbackErrorInvalidResource)", "gpu_fault"),
        ("Caused GPU Address Fault Error (0000000b:kIOGPUCommandBufferCallbackErrorPageFault)", "gpu_fault"),
        ("Impacting Interactivity (0000000e:kIOAccelCommandBufferCallbackErrorImpactingInteractivity)", "interactivity"),
        ("something else", "exception"),
    ],
)  # fmt: skip
def test_what_metal_says_of_a_command_buffer(text, code):
    said = f"[METAL] Command buffer execution failed: {text}."
    assert judge(CODE_1, words=words("RuntimeError", said))[:2] == (code, "known")


def test_a_crash_report_names_the_library_and_the_assertion():
    crash = CrashReport(6, "Ops.mm:346: failed assertion `rank'", "MPSGraph", "check")
    verdict = judge_end(EndEvidence(status=signal(6), reports=SystemReports(crash=crash)))
    assert verdict.values == {
        "signal": 6, "sentence": crash.sentence, "library": "MPSGraph", "symbol": "check",
    }  # fmt: skip


def test_what_could_not_be_read_is_part_of_the_verdict():
    reports = SystemReports(unreadable=("system_reports",))
    assert judge_end(EndEvidence(reports=reports)).unreadable == ("system_reports",)


statuses = (
    st.none()
    | st.builds(ExitStatus, code=st.integers(0, 255))
    | st.builds(ExitStatus, signal=st.integers(1, 64), jetsam=st.none() | st.just("low-swap"))
)
evidences = st.builds(
    EndEvidence,
    status=statuses,
    is_connected=st.booleans(),
    writes_exit_record=st.sampled_from([None, True, False]),
    words=st.none() | st.builds(words, st.sampled_from([None, "ValueError", "MemoryError"]), st.text(), st.booleans()),
    stop_signal=st.sampled_from([None, "SIGINT", "SIGTERM"]),
    pressure=st.sampled_from([None, "normal", "critical"]),
    swap_growth=st.none() | st.integers(0, 1 << 40),
    gpu_reset=st.booleans(),
    restarted=st.booleans(),
    reports=st.builds(
        SystemReports,
        crash=st.none() | st.just(CrashReport(6)),
        jetsam=st.none() | st.just("highwater"),
        cgroup_kill=st.sampled_from([None, True, False]),
    ),
)  # fmt: skip
# What alone can make a verdict known.
HARD = {"exit_status", "last_words", "crash_report", "jetsam_report", "kernel_log", "still_running"}


@given(evidences)
def test_no_verdict_is_more_certain_than_its_evidence(evidence):
    verdict = judge_end(evidence)
    if verdict.sure == "known":
        assert HARD & set(verdict.basis)
    if "exit_status" in verdict.basis:
        assert evidence.status is not None
    if evidence.status is None and verdict.code in (
        "finished",
        "killed",
        "terminated",
        "exit_code",
    ):
        raise AssertionError("a status was made up")
    if verdict.code == "killed_for_memory" and verdict.sure == "known":
        assert evidence.reports.jetsam or (evidence.status and evidence.status.jetsam)
    assert parse_verdict_json(build_verdict_json(verdict)) == verdict or verdict.values
    advise_end(verdict, 7)


@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.booleans(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_a_record_that_is_none_is_refused(value):
    assert parse_verdict_json(value) is None


def test_a_record_of_the_history_is_cleaned():
    verdict = judge_end(EndEvidence(status=CODE_1, words=words("ValueError", "x")))
    record = build_verdict_json(
        replace(verdict, values={"text": "\x1b[2J hf_abcdefghijklmnop", "n": 1})
    )
    read = parse_verdict_json(record | {"basis": ["exit_status", "guess", 7]})
    assert read.values["text"].isprintable()
    assert "hf_" not in read.values["text"]
    assert read.basis == ("exit_status",)


@pytest.mark.parametrize(
    ("code", "first"),
    [
        ("out_of_memory", "smaller_batch"), ("killed_for_memory", "smaller_batch"), ("interactivity", "display_asleep"),
        ("submissions_ignored", "restart_process"), ("gpu_reset", "redo_results"), ("crashed", "fault_handler"),
    ],
)  # fmt: skip
def test_what_to_do_next(code, first):
    verdict = replace(judge_end(EndEvidence()), code=code)
    assert advise_end(verdict, 7)[0].code == first


@pytest.mark.parametrize(
    ("torch", "is_advised"), [("2.13.0", True), ("2.15.0", False), (None, False)]
)
def test_a_torch_that_does_not_raise_when_the_gpu_failed_is_named(torch, is_advised):
    for status, text in ((CODE_1, "Caused GPU Hang Error (00000003:kIOGPUCommandBufferCallbackErrorHang)"),
                         (signal(6), "")):  # fmt: skip
        given = {"words": words("RuntimeError", text)} if text else {"gpu_reset": True}
        verdict = judge_end(EndEvidence(status=status, torch=torch, **given))
        kept = parse_verdict_json(
            json.loads(json.dumps(build_verdict_json(verdict)))
        )  # as in the history
        (found,) = [a for a in advise_end(kept, 7) if a.code == "torch_that_raises"] or [None]
        assert (found is not None) is is_advised
        assert found is None or found.values == {"version": torch}
    assert "torch" not in judge_end(EndEvidence(status=signal(9), torch=torch)).values


@pytest.mark.parametrize(
    ("kind", "text", "codes"),
    [
        ("TypeError", "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. "
         "Please use float32 instead.", ["float32_on_mps"]),
        ("NotImplementedError", "The operator 'aten::lcm.out' is not currently implemented for the MPS device. If you "
         "want this op to be", ["fallback_to_cpu", "newer_framework"]),
        ("ValueError", "float64", []),
    ],
)  # fmt: skip
def test_what_mps_lacks_has_advice(kind, text, codes):
    verdict = judge_end(EndEvidence(status=CODE_1, words=words(kind, text)))
    assert [advice.code for advice in advise_end(verdict, 7)] == codes


def test_an_abort_in_metals_graphs_is_told_with_float32():
    crash = CrashReport(
        6, "MPSGraphOps.mm:346: failed assertion `rank'", "MetalPerformanceShadersGraph"
    )
    for report, is_advised in ((crash, True), (CrashReport(11, "", "libmlx.dylib"), False)):
        verdict = judge_end(EndEvidence(status=signal(6), reports=SystemReports(crash=report)))
        assert ("try_float32" in [advice.code for advice in advise_end(verdict, 7)]) is is_advised


def test_every_code_of_an_end_has_its_kind():
    assert tuple(END_KINDS) == get_args(EndCode)


def test_a_normal_end_needs_no_advice():
    assert advise_end(judge_end(EndEvidence(status=ExitStatus(code=0))), 7) == ()


def test_what_ran_on_the_cpu_is_kept_with_the_verdict():
    """Counted by `mpsbar run --explain`; the history and the report have it from here."""
    operations = (
        FallbackOperation("aten::cumsum", 37, "/w/train.py:4", 1.5, 4096),
        FallbackOperation("linalg_qr", 1),
    )
    for found in (
        Fallbacks(operations, "2.13.0", is_profiled=True),
        Fallbacks(operations[1:], "2.13.0", is_complete=False, is_counted=False),
    ):
        words = LastWords(7, 1.0, 2.0, fallbacks=found)
        verdict = judge_end(EndEvidence(status=ExitStatus(code=0), is_connected=True, words=words))
        assert verdict.fallbacks == found
        assert parse_verdict_json(json.loads(json.dumps(build_verdict_json(verdict)))) == verdict
    plain = judge_end(EndEvidence(status=ExitStatus(code=0), words=LastWords(7, 1.0, 2.0)))
    assert plain.fallbacks is None
    assert parse_verdict_json(build_verdict_json(plain)) == plain
