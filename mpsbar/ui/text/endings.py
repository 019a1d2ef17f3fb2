"""How a process ended, in words: briefly for a row, in a sentence, and with its evidence.

Pure. What is only likely is always worded as likely.
"""

from collections.abc import Callable, Mapping
from datetime import datetime

from mpsbar.core.advice import advise_end
from mpsbar.core.events import EndedProcess
from mpsbar.core.findings import Value
from mpsbar.core.host_readings import EndInWords
from mpsbar.core.naming import printable
from mpsbar.core.signals import name_signal
from mpsbar.core.torch_facts import NativeOperations
from mpsbar.core.verdicts import EndVerdict
from mpsbar.language import _
from mpsbar.ui.text.advice import fill_in, say_advice
from mpsbar.ui.text.cells import cut_middle
from mpsbar.ui.text.fallbacks import render_fallbacks
from mpsbar.ui.text.wording import UNKNOWN, ago, clock, duration, size

# Where these are only likely, the words below do not say so themselves.
_UNHEDGED = {
    "exception", "out_of_memory", "stopped", "interrupted", "metal_timeout", "interactivity",
    "submissions_ignored", "gpu_fault", "panic",
}  # fmt: skip
_BRIEF_WIDTH = 60
_TEXT_WIDTH = 200


def describe_end(process: EndedProcess, now: float) -> str:
    """Returns when and how, such as: ended 3 min ago, out of memory at 27.4 GB, peak 27.9 GB."""
    words = (
        _("ended {ago}")
        if process.was_seen or _has_cause(process.verdict)
        else _("last seen {ago}, ended while mpsbar was not running")
    )
    when, how = words.format(ago=ago(process.ended, now)), say_briefly(process.verdict, process.how)
    peak = "" if process.peak is None else _("peak {size}").format(size=size(process.peak))
    # The size at which it ran out of memory says more than the peak, and there is little room.
    parts = [when, peak, how] if process.verdict is None else [when, how, peak]
    if process.verdict is not None and process.verdict.values.get("at") is not None:
        parts.remove(peak)
    return ", ".join(part for part in parts if part)


def _has_cause(verdict: EndVerdict | None) -> bool:
    return verdict is not None and verdict.code != "unknown"


def say_briefly(verdict: EndVerdict | None, how: str | None = None) -> str:
    """Returns a few words for a row, such as: out of memory at 27.4 GB."""
    if verdict is None:
        return _say_old(how)
    values = verdict.values
    how = _briefly(verdict).format(
        at=_size(values.get("at")), code=_number(values.get("code")), type=_type(verdict),
        signal=say_signal(values), named=_name_library(verdict),
    )  # fmt: skip
    is_fact = verdict.sure == "known" or verdict.code not in _UNHEDGED
    return how if is_fact else _("most likely {how}").format(how=how)


def _say_old(how: str | None) -> str:
    """Returns words for an end that was recorded before mpsbar knew exit codes."""
    return {
        "stopped": _("stopped by mpsbar"),
        "pressure": _("exit code unknown, memory pressure was critical"),
    }.get(how or "", _("exit code unknown"))


def _briefly(verdict: EndVerdict) -> str:
    is_known = verdict.sure == "known"
    has_size = isinstance(verdict.values.get("at"), int)
    return {
        "finished": _("finished"),
        "exited": _("exited, exit code unknown"),
        "exit_code": _("exit code {code}"),
        "exception": _("{type}"),
        "out_of_memory": _("out of memory at {at}") if has_size else _("out of memory"),
        "killed_for_memory": _("killed by the system for lack of memory")
        if is_known
        else _("killed, most likely for lack of memory"),
        "killed": _("killed ({signal})"),
        "stopped": _("stopped by mpsbar"),
        "interrupted": _("interrupted"),
        "terminated": _("ended by {signal}"),
        "other_rank": _("most likely ended by its launcher"),
        "crashed": _("crashed{named} ({signal})"),
        "metal_timeout": _("GPU timeout"),
        "interactivity": _("GPU work ended by macOS to keep the screen responsive"),
        "submissions_ignored": _("GPU work refused after repeated errors"),
        "gpu_fault": _("GPU memory fault"),
        "gpu_reset": _("GPU reset") if is_known else _("ended when the GPU was reset"),
        "code_signing": _("killed by macOS: its code was changed"),
        "panic": _("kernel panic"),
        "restarted": _("the computer restarted"),
        "replaced": _("became another program"),
    }.get(verdict.code, _("exit code unknown"))


def say_verdict(verdict: EndVerdict | None, name: str, how: str | None = None) -> str:
    """One sentence, with the numbers that are known."""
    name = cut_middle(name, 40)
    if verdict is None:
        return _("{name} ended: {how}").format(name=name, how=_say_old(how))
    values = verdict.values
    words = {key: _word(key, value) for key, value in values.items()}
    words |= {
        "name": name, "signal": say_signal(values), "type": _type(verdict),
        "named": _name_library(verdict), "text": _text(values.get("text")),
    }  # fmt: skip
    sentence = _sentence(verdict)
    is_last_error = verdict.sure != "known" and "last_words" in verdict.basis
    if is_last_error and verdict.code not in ("exception", "stopped"):
        sentence += _(" (the last error that Python printed)")
    return fill_in(sentence, words)


def _sentence(verdict: EndVerdict) -> str:
    is_known, values = verdict.sure == "known", verdict.values
    if verdict.code == "out_of_memory":
        return _memory_sentence(verdict)
    if verdict.code == "exception":
        return _exception_sentence(verdict)
    if verdict.code == "killed_for_memory":
        if is_known:
            return _("{name} was killed by the system for lack of memory ({reason})")
        return _("{name} was killed (SIGKILL), most likely by the system for lack of memory")
    if verdict.code == "crashed":
        sentence = _("{name} crashed in native code{named} ({signal})")
        return sentence + (": {sentence}" if values.get("sentence") else "")
    if verdict.code == "gpu_reset" and not is_known and not values.get("text"):
        return _("{name} ended ({signal}) when the GPU was reset, most likely because of it")
    if verdict.code == "stopped":
        return (
            _("{name} was stopped by mpsbar")
            if is_known
            else _("{name} ended after mpsbar asked it to stop")
        )
    if verdict.code == "panic":
        return _(
            "The computer restarted after a kernel panic, most likely while {name} ran: {reason}"
        )
    return {
        "finished": _("{name} finished (exit code 0)"),
        "exited": _("{name} exited; its exit code is unknown"),
        "exit_code": _("{name} ended with exit code {code}"),
        "killed": _("{name} was killed (SIGKILL); whether by a user or by the system is unknown"),
        "interrupted": _("{name} was interrupted (Ctrl-C)"),
        "terminated": _("{name} was ended by a signal ({signal})"),
        "other_rank": _("{name} was most likely ended by its launcher after {rank} failed"),
        "metal_timeout": _("The GPU took too long for {name}, and macOS ended its work: {text}"),
        "interactivity": _(
            "macOS ended long GPU work of {name} to keep the screen responsive: {text}"
        ),
        "submissions_ignored": _(
            "macOS refused the GPU work of {name} after repeated errors: {text}"
        ),
        "gpu_fault": _("The GPU work of {name} accessed invalid memory: {text}"),
        "gpu_reset": _("The GPU was reset while {name} was using it: {text}"),
        "code_signing": _("macOS killed {name} because its signed code was changed"),
        "restarted": _(
            "The computer was restarted while {name} was running, as far as mpsbar knows"
        ),
        "replaced": _("{name} replaced itself with another program, which is still running"),
    }.get(verdict.code, _("{name} ended; the reason is unknown"))


def _exception_sentence(verdict: EndVerdict) -> str:
    values = verdict.values
    if verdict.sure != "known":
        sentence = _("{name} failed; the last error that Python printed was {type}: {text}")
    elif values.get("text"):
        sentence = _("{name} ended with {type}: {text}")
    else:
        sentence = _("{name} ended with {type}")
    return sentence + (_(" at {where}") if values.get("where") else "")


def _memory_sentence(verdict: EndVerdict) -> str:
    values = verdict.values
    if values.get("allocated") is not None:
        sentence = _(
            "{name} ran out of memory: {allocated} allocated, {other} other, {limit} allowed"
        )
    elif values.get("limit") is not None:
        sentence = _("{name} ran out of memory: at most {limit} are allowed in one buffer")
    else:
        sentence = _("{name} ran out of memory")
        sentence += _(" at {at}") if values.get("at") is not None else ""
    if values.get("tried") is not None:
        sentence += _("; it asked for {tried} more")
    return sentence


def say_basis(verdict: EndVerdict) -> list[str]:
    """What the verdict rests on, and what could not be read."""
    values = verdict.values
    words = {
        "exit_status": _say_status(values),
        "last_words": _("the exit record written by its agent"),
        "no_last_words": _("no exit record from its agent: Python did not exit normally"),
        "crash_report": _("macOS's crash report about this process"),
        "jetsam_report": _("macOS's jetsam report, which names this process"),
        "kernel_log": _("the kernel's log, which names this process"),
        "cgroup": _("its cgroup counted a kill for memory at that time"),
        "pressure": _("memory pressure was critical in the minute before"),
        "swap": _("swap grew by {size} in the minute before").format(
            size=_size(values.get("swap"))
        ),
        "stop_asked": _("Stop was chosen in mpsbar"),
        "gpu_recovery": _("the GPU's reset counter increased at that time"),
        "gpu_event": _("a GPU event from that time that names {name} ({reason})").format(
            name=printable(str(values.get("named") or "?")),
            reason=printable(str(values.get("reason") or "?")),
        ),
        "panic_report": _("macOS's panic report"),
        "restart": _("the computer was restarted after the process was last seen"),
        "still_running": _("the process is still running, with a different command line"),
        "other_rank": _("another process of the same launcher failed just before"),
        "exit_reason": _("the kernel's own exit reason"),
    }
    unread = {
        "system_reports": _("not read: /Library/Logs/DiagnosticReports (only administrators may)"),
        "user_reports": _("not read: ~/Library/Logs/DiagnosticReports"),
        "kernel_log": _("not read: the kernel's log (only administrators may)"),
    }
    lines = [words[item] for item in verdict.basis if item in words]
    return [*lines, *(unread[item] for item in verdict.unreadable if item in unread)]


def _say_status(values: dict[str, Value]) -> str:
    if values.get("signal") is not None:
        return _("the kernel's exit status: {signal}").format(signal=say_signal(values))
    if values.get("code") is not None:
        return _("the kernel's exit status: code {code}").format(code=_number(values["code"]))
    return _("the kernel's exit status")


def say_certainty(verdict: EndVerdict) -> str:
    return {"known": _("known"), "likely": _("likely")}.get(verdict.sure, _("unknown"))


def say_next_steps(verdict: EndVerdict | None, name: str, pid: int | None) -> list[str]:
    if verdict is None:
        return []
    return [say_advice(step, name) for step in advise_end(verdict, pid)]


def say_details(
    process: EndedProcess,
    read_native: Callable[[], NativeOperations],
    home: str = "",
    with_commands: bool = True,
) -> list[str]:
    """Lists everything about an end: the sentence, times, evidence, what to do next.

    `read_native` is called only where something fell back to the CPU. Without commands: for
    people who have the app alone.
    """
    lines = [say_verdict(process.verdict, process.name, process.how)]
    times = []
    if process.was_seen or _has_cause(process.verdict):
        times.append(_("ended at {time}").format(time=clock(process.ended)))
    if process.ran is not None:
        times.append(_("ran for {time}").format(time=duration(process.ran)))
    if process.peak is not None:
        times.append(_("peak {size}").format(size=size(process.peak)))
    lines += [", ".join(times)] if times else []
    if process.verdict is not None:
        lines += [_("Evidence: {text}").format(text=text) for text in say_basis(process.verdict)]
        advice = advise_end(process.verdict, process.pid)
        steps = [say_advice(step, process.name, with_commands) for step in advice]
        lines += [f"→ {step}" for step in steps]
        if process.verdict.fallbacks is not None:
            lines += render_fallbacks(
                process.verdict.fallbacks, read_native(), home=home, with_commands=with_commands
            )
    return lines


def say_signal(values: Mapping[str, Value]) -> str:
    """Returns the signal's name, such as SIGTERM; where it has none, or an older record doesn't say
    it: signal 40."""
    number, name = values.get("signal"), values.get("signal_name")
    if not isinstance(number, int):
        return "?"
    if isinstance(name, str):
        return printable(name, 20)
    return name_signal(number, None) or _("signal {number}").format(number=number)


def _type(verdict: EndVerdict) -> str:
    return printable(str(verdict.values.get("type") or "?"), _BRIEF_WIDTH)


def _name_library(verdict: EndVerdict) -> str:
    """Returns the place that a crash report names, such as: in libtorch_cpu.dylib."""
    library, symbol = verdict.values.get("library"), verdict.values.get("symbol")
    place = library or symbol
    return _(" in {place}").format(place=printable(str(place), 60)) if place else ""


def _text(value: Value) -> str:
    return cut_middle(str(value or ""), _TEXT_WIDTH)


def _word(key: str, value: Value) -> str:
    if key in ("at", "allocated", "other", "limit", "tried", "swap", "peak", "held"):
        return _size(value)
    return "?" if value is None else _text(value)


def _size(value: Value) -> str:
    return size(value if isinstance(value, int) else None)


def _number(value: Value) -> str:
    return str(value) if isinstance(value, int) else "?"


def render_end(
    end: EndInWords,
    read_native: Callable[[], NativeOperations],
    home: str = "",
    is_time_sure: bool = True,
) -> str:
    """Renders how a run ended, on several lines. If its time is not sure, it was last seen then.

    `read_native` is called only where something fell back to the CPU.
    """
    facts = []
    if end.ended is not None:
        text = _("ended {time}") if is_time_sure else _("last seen {time}")
        facts.append(text.format(time=say_moment(end.ended)))
    if end.ran is not None:
        facts.append(_("ran for {time}").format(time=duration(end.ran)))
    if end.peak is not None:
        facts.append(_("peak {size}").format(size=size(end.peak)))
    lines = [f"{end.sentence.rstrip('.')}.", f"  {', '.join([f'{end.name} ({end.pid})', *facts])}"]
    if end.certainty is not None:
        lines.append("  " + _("Certainty: {words}").format(words=end.certainty))
    lines += ["  " + _("Evidence: {words}").format(words=words) for words in end.evidence]
    lines += [f"  → {step}" for step in end.next_steps]
    if end.fallbacks is not None:
        shown = render_fallbacks(end.fallbacks, read_native(), home=home)
        lines += [f"  {line}" for line in shown]
    return "\n".join(lines)


def say_moment(when: float) -> str:
    """Returns a local time, such as Fri 13 Nov, 14:02:00; one that no calendar has is unknown."""
    try:
        moment = datetime.fromtimestamp(when).astimezone()
        return _("{time:%a %d %b, %H:%M:%S}").format(time=moment)
    except (ValueError, OverflowError, OSError):
        return UNKNOWN
