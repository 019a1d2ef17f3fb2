"""Judges how a process ended: one verdict from all evidence, with its certainty and its basis.

Pure. A verdict is never more certain than its evidence: "known" is what the kernel, Python or a
report about this very process said; "likely" is what fits and is worded as that. A new kind of
end: EndCode, END_KINDS and a rule here; its words are in ui/text/endings.py.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from mpsbar.agent.secrets import mask
from mpsbar.core.endings import EndEvidence, RaisedError
from mpsbar.core.error_texts import find_metal_error, is_memory_error, read_sizes
from mpsbar.core.fallbacks import Fallbacks, parse_fallbacks
from mpsbar.core.findings import Value
from mpsbar.core.naming import printable
from mpsbar.core.signals import CRASHES, name_signal

Sureness = Literal["known", "likely", "unknown"]
Basis = Literal[
    "exit_status", "last_words", "no_last_words", "crash_report", "jetsam_report", "kernel_log",
    "cgroup", "pressure", "swap", "stop_asked", "gpu_recovery", "gpu_event", "panic_report",
    "restart", "still_running", "other_rank", "exit_reason",
]  # fmt: skip
EndCode = Literal[
    "finished", "exited", "exit_code", "exception", "out_of_memory", "killed_for_memory", "killed",
    "stopped", "interrupted", "terminated", "other_rank", "crashed", "metal_timeout",
    "interactivity", "submissions_ignored", "gpu_fault", "gpu_reset", "code_signing", "panic",
    "restarted", "replaced", "unknown",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class EndKind:
    """What holds for every end with the same code."""

    advice: tuple[str, ...] = ()  # codes of Advice; the evidence of one end may add some
    is_normal: bool = False  # not worth a notification
    # The GPU or its driver failed: whether torch raises then depends on its version.
    is_metal: bool = False


END_KINDS: dict[EndCode, EndKind] = {
    "finished": EndKind(is_normal=True),  # exit code 0
    "exited": EndKind(is_normal=True),  # by itself, the code is not known
    "exit_code": EndKind(),
    "exception": EndKind(),
    # In torch's, MLX's or Python's own words.
    "out_of_memory": EndKind(("smaller_batch", "shorter_input")),
    # By the system.
    "killed_for_memory": EndKind(("smaller_batch", "watermark_lower", "watch_memory")),
    "killed": EndKind(("watch_memory",)),  # SIGKILL, by a person or by the system
    "stopped": EndKind(is_normal=True),  # by Stop in mpsbar
    "interrupted": EndKind(is_normal=True),  # Ctrl-C
    "terminated": EndKind(is_normal=True),  # asked to stop by a signal
    "other_rank": EndKind(),  # ended by its launcher after another rank failed
    "crashed": EndKind(("fault_handler", "newer_framework")),
    "metal_timeout": EndKind(("shorter_kernels", "relax_timeout"), is_metal=True),
    "interactivity": EndKind(("display_asleep", "shorter_kernels"), is_metal=True),
    "submissions_ignored": EndKind(("restart_process",)),
    "gpu_fault": EndKind(("newer_framework", "report_bug"), is_metal=True),
    "gpu_reset": EndKind(("redo_results", "relax_timeout"), is_metal=True),
    "code_signing": EndKind(),
    "panic": EndKind(("newer_macos", "smaller_batch")),
    "restarted": EndKind(),
    "replaced": EndKind(is_normal=True),  # it runs on as another program
    "unknown": EndKind(is_normal=True),
}
SIGINT, SIGKILL, SIGTERM = 2, 9, 15
# In the minute before: as much swap as a run that fits does not need.
SWAP_GROWTH = 1 << 30
_MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class EndVerdict:
    code: EndCode
    sure: Sureness
    values: dict[str, Value] = field(default_factory=dict)
    basis: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()  # what may have said more, and could not be read
    fallbacks: Fallbacks | None = None  # what ran on the CPU; None: nothing is known of any

    @property
    def is_normal(self) -> bool:
        return END_KINDS[self.code].is_normal


def judge_end(evidence: EndEvidence) -> EndVerdict:
    verdict = _judge(evidence)
    values = dict(verdict.values)
    for counter, size in (("peak", evidence.peak), ("held", evidence.held)):
        if size is not None:
            values.setdefault(counter, size)
    number = values.get("signal")
    if isinstance(number, int) and name_signal(number, None) is None:
        # Whoever reads it may do so on another system, where this number is another signal.
        name = name_signal(number, evidence.is_mac)
        values |= {} if name is None else {"signal_name": name}
    if evidence.torch is not None and END_KINDS[verdict.code].is_metal:
        values["torch"] = evidence.torch
    fallbacks = None if evidence.words is None else evidence.words.fallbacks
    unreadable = evidence.reports.unreadable
    return EndVerdict(verdict.code, verdict.sure, values, verdict.basis, unreadable, fallbacks)


def _judge(e: EndEvidence) -> EndVerdict:
    if e.became:
        return EndVerdict("replaced", "known", {}, ("still_running",))
    status = e.status
    if status is None:
        return _judge_unseen(e)
    if status.signal is not None:
        return _judge_signal(e, status.signal)
    assert status.code is not None
    verdict = _judge_error(e, ("exit_status",))
    if verdict is not None:
        return verdict
    if e.stop_signal is not None:
        return EndVerdict("stopped", "likely", {"code": status.code}, ("stop_asked", "exit_status"))
    if status.code == 0:
        return EndVerdict("finished", "known", {"code": 0}, ("exit_status",))
    return EndVerdict(
        "exit_code", "known", {"code": status.code}, ("exit_status", *_judge_missing_record(e))
    )


def _judge_unseen(e: EndEvidence) -> EndVerdict:
    """Judges an end whose exit status mpsbar did not see, or the system does not tell."""
    reports = e.reports
    verdict = _judge_error(e, ())
    if verdict is not None:
        return verdict
    # Before the words: a library may crash after Python has ended, when they were left already.
    if reports.crash is not None:
        return _judge_crash(e, reports.crash.signal, ())
    if (memory := _judge_reported_kill(e, ())) is not None:
        return memory
    if e.words is not None:
        if e.stop_signal is not None:
            return EndVerdict("stopped", "likely", {}, ("stop_asked", "last_words"))
        return EndVerdict("exited", "known", {}, ("last_words",))
    if e.restarted:
        if reports.panic is not None:
            panic = {"reason": reports.panic.reason, "task": reports.panic.task}
            return EndVerdict("panic", "likely", {**panic}, ("restart", "panic_report"))
        return EndVerdict("restarted", "likely", {}, ("restart",))
    if e.stop_signal is not None:
        return EndVerdict("stopped", "likely", {}, ("stop_asked",))
    basis: tuple[Basis, ...] = _judge_missing_record(e)
    if e.pressure == "critical":
        basis = (*basis, "pressure")
    return EndVerdict("unknown", "unknown", {}, basis)


def _judge_signal(e: EndEvidence, number: int) -> EndVerdict:
    values: dict[str, Value] = {"signal": number}
    seen: tuple[Basis, ...] = ("exit_status",)
    if e.status is not None and e.status.code_signing:
        return EndVerdict("code_signing", "known", values, seen)
    memory = _judge_reported_kill(e, seen)
    if memory is not None:
        return memory
    if number == SIGKILL:
        return _judge_kill(e, values)
    if name_signal(number, e.is_mac) in CRASHES:
        return _judge_crash(e, number, seen)
    if e.stop_signal is not None and number in (SIGINT, SIGTERM):
        return EndVerdict("stopped", "known", values, ("stop_asked", *seen))
    if e.parent_failed is not None and number == SIGTERM:
        return EndVerdict("other_rank", "likely", values | {"rank": e.parent_failed},
                          (*seen, "other_rank"))  # fmt: skip
    code: EndCode = "interrupted" if number == SIGINT else "terminated"
    return EndVerdict(code, "known", values, seen)


def _judge_reported_kill(e: EndEvidence, seen: tuple[Basis, ...]) -> EndVerdict | None:
    """Judges an end of which the system itself says that it killed this process for memory."""
    sources: list[tuple[str | None, Basis]] = [
        (e.status.jetsam if e.status else None, "exit_status"),
        (e.exit_reason, "exit_reason"),
        (e.reports.jetsam, "jetsam_report"),
        ("oom-killer" if e.reports.kernel_log else None, "kernel_log"),
    ]
    for reason, basis in sources:
        if reason is not None:
            values: dict[str, Value] = {"signal": SIGKILL, "reason": reason}
            return EndVerdict(
                "killed_for_memory", "known", values, tuple(dict.fromkeys((*seen, basis)))
            )
    return None


def _judge_kill(e: EndEvidence, values: dict[str, Value]) -> EndVerdict:
    """Judges a SIGKILL of an unknown sender: macOS does not report its usual kill for memory."""
    basis: list[Basis] = ["exit_status"]
    if e.reports.cgroup_kill:
        return EndVerdict("killed_for_memory", "likely", values, ("exit_status", "cgroup"))
    is_counted = e.reports.cgroup_kill is not None  # by Linux: no need to guess
    if e.pressure == "critical" and not is_counted:
        basis.append("pressure")
    if e.swap_growth is not None and e.swap_growth >= SWAP_GROWTH and not is_counted:
        basis.append("swap")
        values = values | {"swap": e.swap_growth}
    if len(basis) > 1:
        return EndVerdict("killed_for_memory", "likely", values, tuple(basis))
    if e.parent_failed is not None:
        return EndVerdict("other_rank", "likely", values | {"rank": e.parent_failed},
                          ("exit_status", "other_rank"))  # fmt: skip
    return EndVerdict("killed", "known", values, ("exit_status",))


def _judge_crash(e: EndEvidence, number: int | None, seen: tuple[Basis, ...]) -> EndVerdict:
    report, values = e.reports.crash, dict[str, Value]({"signal": number})
    basis: list[Basis] = list(seen)
    if report is not None:
        basis.append("crash_report")
        values |= {
            name: text
            for name in ("sentence", "library", "symbol")
            if (text := getattr(report, name))
        }
        if report.has_python_traceback:
            values["traceback"] = 1
        code = find_metal_error(report.sentence)
        if code is not None:
            return EndVerdict(code, "known", values | {"text": report.sentence}, tuple(basis))
    resets: list[Basis] = []
    if e.gpu_reset:
        resets.append("gpu_recovery")
    if e.reports.gpu_event is not None:
        resets.append("gpu_event")
        values |= {"named": e.reports.gpu_event.name, "reason": e.reports.gpu_event.reason}
    if resets and number == 6:
        return EndVerdict("gpu_reset", "likely", values, (*basis, *resets))
    return EndVerdict("crashed", "known", values, tuple(basis))


def _judge_error(e: EndEvidence, seen: tuple[Basis, ...]) -> EndVerdict | None:
    """Judges an exception that ended it; None where none did, as far as is known."""
    error = e.words.error if e.words is not None else None
    if error is None:
        return None
    sure: Sureness = "known"
    if not error.is_main:
        # A prompt, a notebook or a test went on after it: it counts only after a bad end.
        if e.status is None or e.status.code in (0, None):
            return None
        sure = "likely"
    basis: tuple[Basis, ...] = (*seen, "last_words")
    values: dict[str, Value] = {"type": error.type, "text": error.text, "where": error.where}
    if e.status is not None and e.status.code is not None:
        values["code"] = e.status.code
    if error.type == "KeyboardInterrupt":
        if e.stop_signal is not None:
            return EndVerdict("stopped", "known", {}, ("stop_asked", *basis))
        return EndVerdict("interrupted", sure, {}, basis)
    if is_memory_error(error):
        return EndVerdict("out_of_memory", sure, values | _find_sizes(error, e), basis)
    code = find_metal_error(error.text)
    if code is not None:
        if e.gpu_reset:
            basis = (*basis, "gpu_recovery")
        return EndVerdict(code, sure, values, basis)
    return EndVerdict("exception", sure, values, basis)


def _find_sizes(error: RaisedError, e: EndEvidence) -> dict[str, Value]:
    """Returns bytes; `at` is what was in use, as the allocator said or as it was last read."""
    sizes: dict[str, Value] = {**read_sizes(error.text)}
    if "at" not in sizes:
        held = (e.words.memory.get("held") if e.words is not None else None) or e.held
        if held is not None:
            sizes["at"] = held
    return sizes


def _judge_missing_record(e: EndEvidence) -> tuple[Basis, ...]:
    """Returns missing last words as evidence, if the agent would have written some."""
    expected = e.is_connected and e.writes_exit_record and "last_words" not in e.reports.unreadable
    return ("no_last_words",) if expected and e.words is None else ()


def build_verdict_json(verdict: EndVerdict) -> dict[str, Any]:
    """Returns the verdict as plain data, for the history and for --json."""
    return asdict(verdict)


def parse_verdict_json(value: Any) -> EndVerdict | None:
    """Parses what build_verdict_json built; None for anything else."""
    if not isinstance(value, Mapping) or value.get("code") not in get_args(EndCode):
        return None
    sure: Any = value.get("sure")
    values = value.get("values")
    if sure not in get_args(Sureness) or not isinstance(values, Mapping):
        return None
    kept = {
        printable(str(name), 40): _clean(item)
        for name, item in list(values.items())[:20]
        if item is None or (isinstance(item, int | float | str) and not isinstance(item, bool))
    }
    basis, unreadable = _words(value.get("basis"), Basis), _words(value.get("unreadable"))
    fallbacks = parse_fallbacks(value.get("fallbacks"))
    return EndVerdict(value["code"], sure, kept, basis, unreadable, fallbacks)


def _clean(item: Value) -> Value:
    return mask(printable(item, 2 * _MAX_TEXT)) if isinstance(item, str) else item


def _words(value: Any, allowed: Any = None) -> tuple[str, ...]:
    known = get_args(allowed) if allowed is not None else None
    items = value if isinstance(value, list | tuple) else ()
    return tuple(
        item for item in items[:20]
        if isinstance(item, str) and item.isidentifier() and (known is None or item in known)
    )  # fmt: skip
