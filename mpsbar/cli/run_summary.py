"""mpsbar run --summary: runs a command as a child and prints at its end what it used."""

import json
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mpsbar.cli.output import print_stderr
from mpsbar.cli.run_usage import Collector, Usage
from mpsbar.core.end_evidence import build_evidence, will_be_reported
from mpsbar.core.endings import EndEvidence, LastWords
from mpsbar.core.errors import reason_of
from mpsbar.core.events import EndedProcess
from mpsbar.core.fallbacks import Fallbacks, merge_operations
from mpsbar.core.naming import name_process
from mpsbar.core.verdicts import EndVerdict, judge_end
from mpsbar.language import _, english
from mpsbar.system import this_computer
from mpsbar.system.files import replace_file
from mpsbar.system.foreground import CommandEnd, exit_like, run_command
from mpsbar.system.last_words import (
    complete_fallbacks,
    find_last_words,
    note_end,
    read_last_words,
)
from mpsbar.system.native_operations import read_native_operations
from mpsbar.system.platform import Computer, EndedPid, ReportReader, parse_wait_status
from mpsbar.ui.text import cells, endings, wording
from mpsbar.ui.text.fallbacks import build_fallbacks, render_fallbacks

if TYPE_CHECKING:
    from mpsbar.workers.explain import Explanation

_MAX_OTHERS = 5
_MAX_NOTED = 20
# macOS writes a crash report within about a second.
_REPORT_SECONDS, _REREAD_SECONDS = 3.0, 0.5
# xnu's sys/reason.h: OS_REASON_JETSAM, and the code of a kill for lack of swap.
_JETSAM, _LOW_SWAP = 1, 13


def run_explained(command: Sequence[str], environ: Mapping[str, str], json_file: str | None) -> int:
    """Does what `run` does and counts CPU fallbacks. OSError: the command could not be started."""
    from mpsbar.workers.explain import build_explain_environment, read_explanation

    try:
        place = tempfile.TemporaryDirectory(prefix="mpsbar-explain-", ignore_cleanup_errors=True)
    except OSError as problem:
        print_stderr(
            _("mpsbar: can't count CPU fallbacks: {problem}").format(problem=reason_of(problem))
        )
        return run(command, environ, json_file)
    with place as folder:
        added = build_explain_environment(environ, folder)
        return run(command, {**environ, **added}, json_file, lambda: read_explanation(Path(folder)))


def run(
    command: Sequence[str],
    environ: Mapping[str, str],
    json_file: str | None,
    explain: "Callable[[], Explanation] | None" = None,
) -> int:
    """Runs the command, prints how it ended and what it used, and ends the same way. OSError: it
    could not be started."""
    computer = this_computer()
    collector = Collector(computer)
    try:
        end = run_command(command, environ, collector.start, computer.read_exit_reason)
    finally:
        collector.close()
    explanation = None if explain is None else explain()
    if explanation is not None:
        for line in explanation.stderr:
            print_stderr(line)
        for pid, counted in explanation.by_process.items():
            complete_fallbacks(pid, end.began, counted)
    if explanation is None:
        fallbacks = find_first_fallbacks(end, collector.usage)
    else:
        fallbacks = explanation.fallbacks
    verdict = judge_command(end, computer, collector)
    with nullcontext() if json_file is None else english():
        summary = build_summary(command, end, collector, verdict)
        summary |= _build_fallbacks(fallbacks)
    try:
        for seen in _list_ends(name_command(command), end, collector, verdict):
            note_end(seen)
    except OSError as problem:  # every further record would fail alike
        _report_unwritten(problem.filename, problem)
    if json_file is not None:
        try:
            replace_file(Path(json_file).expanduser(), (json.dumps(summary) + "\n").encode())
        except OSError as problem:
            _report_unwritten(json_file, problem)
    else:
        print_stderr(render_summary(summary))
        if fallbacks is not None:
            lines = render_fallbacks(fallbacks, read_native_operations(), str(Path.cwd()))
            print_stderr("\n".join(f"  {line}" for line in lines))
    return exit_like(end.status)


def _report_unwritten(file: str, problem: OSError) -> None:
    text = _("mpsbar: couldn't write {file}: {problem}")
    print_stderr(text.format(file=file, problem=reason_of(problem)))


def name_command(command: Sequence[str]) -> str:
    return name_process(tuple(command), executable=shutil.which(command[0]))


def _list_ends(
    name: str, end: CommandEnd, collector: Collector, verdict: EndVerdict
) -> list[EndedProcess]:
    """Returns the ends to add to the exit records that `mpsbar why` reads: only the parent knows an
    exit code, and a process that was killed wrote no record."""
    usage = collector.usage
    own = EndedProcess(end.pid, end.began, name, end.ended, peak=_find_peak(end, usage))
    own = own.with_verdict(verdict)
    others = [other for other in collector.others.values() if other.how != "unknown"]
    return [ended for ended in (own, *others[:_MAX_NOTED]) if ended.pid in usage.exit_record_pids]


def build_summary(
    command: Sequence[str], end: CommandEnd, collector: Collector, verdict: EndVerdict
) -> dict[str, object]:
    usage = collector.usage
    name = name_command(command)
    for words in _read_records(end, usage):
        usage.note("allocated", words.memory.get("peak"))
        usage.note("driver", words.memory.get("driver"))
        usage.note("cached", words.memory.get("cached"))
        usage.workers.add(words.pid)
        usage.exit_record_pids.add(words.pid)
    usage.note("footprint", end.most_resident)
    others = [
        {"pid": other.pid, "name": other.name, "how": endings.say_briefly(other.verdict)}
        for other in list(collector.others.values())[:_MAX_OTHERS]
        if other.verdict is not None and not other.verdict.is_normal
    ]
    return {
        "command": name,
        "pid": end.pid,
        "verdict": asdict(verdict),
        "how": endings.say_verdict(verdict, name),
        "evidence": endings.say_basis(verdict),
        "next_steps": endings.say_next_steps(verdict, name, end.pid),
        "seconds": round(end.ended - end.began, 3),
        "connected_processes": len(usage.workers),
        "peak_allocated": usage.allocated,
        "peak_driver": usage.driver,
        "largest_cache": usage.cached,
        "peak_footprint": usage.footprint,
        "frees": sum(usage.frees.values()),
        "failed_children": others,
    }


def _read_records(end: CommandEnd, usage: Usage) -> list[LastWords]:
    """Returns the exit records of the command's processes; a record names its process's parent, so
    this includes processes that ended before the monitor saw them."""
    rest = [words for words in read_last_words(end.began) if words.attached >= end.began - 1]
    ours, records = {end.pid, *usage.workers}, list[LastWords]()
    while more := [words for words in rest if words.pid in ours or words.parent in ours]:
        records += more
        ours |= {words.pid for words in more}
        rest = [words for words in rest if words not in more]
    return records


def find_first_fallbacks(end: CommandEnd, usage: Usage) -> Fallbacks | None:
    """Returns what is known without --explain: the first fallback that torch warned of per process.

    None: none of them used MPS, as far as is known. A process that was killed wrote no record, and
    one with many modules did not search them all, so there may be more fallbacks.
    """
    records = _read_records(end, usage)
    known = [words.fallbacks for words in records if words.fallbacks is not None]
    torch = usage.torch or next((t for w in records if (t := w.frameworks.get("torch"))), None)
    used = usage.devices or {"mps" for words in records if "driver" in words.memory}
    if not known and (torch is None or "mps" not in used):
        return None
    operations = merge_operations(
        operation for fallbacks in known for operation in fallbacks.operations
    )
    is_complete = usage.workers <= {words.pid for words in records}
    is_complete &= all(words.knows_fallbacks for words in records)
    return Fallbacks(operations, torch, is_complete=is_complete, is_counted=False)


def _build_fallbacks(fallbacks: Fallbacks | None) -> dict[str, object]:
    """Returns the fields of the JSON; `cpu_fallbacks` is null if they were not counted."""
    if fallbacks is None or fallbacks.torch is None:
        return {"cpu_fallbacks": None, "fallbacks": None, "fallbacks_complete": None}
    return {
        "cpu_fallbacks": fallbacks.count if fallbacks.is_counted else None,
        "fallbacks": build_fallbacks(fallbacks, read_native_operations()),
        "fallbacks_complete": fallbacks.is_complete and fallbacks.is_counted,
    }


def _find_peak(end: CommandEnd, usage: Usage) -> int | None:
    """Returns the command's own peak; None if its children's can't be told apart from it."""
    return usage.allocated if usage.workers == {end.pid} else None


def judge_command(end: CommandEnd, computer: Computer, collector: Collector) -> EndVerdict:
    usage = collector.usage
    reason, why = end.exit_reason, None
    if reason is not None and reason[0] == _JETSAM:
        why = "low-swap" if reason[1] == _LOW_SWAP else f"jetsam reason {reason[1]}"
    known = EndEvidence(
        status=parse_wait_status(end.status),
        is_connected=end.pid in usage.workers,
        writes_exit_record=end.pid in usage.exit_record_pids,
        words=find_last_words(end.pid, end.began),
        peak=_find_peak(end, usage),
        torch=usage.torch,
        exit_reason=why,
        is_mac=computer.is_mac,
    )
    evidence = build_evidence(known, end.ended, collector.conditions)
    return judge_end(_add_reports(evidence, end, collector.reports))


def _add_reports(evidence: EndEvidence, end: CommandEnd, reader: ReportReader) -> EndEvidence:
    """Adds the reports about the command; waits only if a crash report may still come."""
    if evidence.status is None or evidence.status.signal is None:
        return evidence
    ended = EndedPid(end.pid, None, end.began, end.ended, evidence.status.signal)
    evidence = replace(evidence, reports=reader.read(ended))
    waited = 0.0
    while will_be_reported(evidence) and waited < _REPORT_SECONDS:
        threading.Event().wait(_REREAD_SECONDS)
        waited += _REREAD_SECONDS
        evidence = replace(evidence, reports=reader.read(ended))
    return evidence


def render_summary(summary: Mapping[str, object]) -> str:
    """Returns the text that a person reads at the end of a run."""

    def size(name: str) -> str:
        value = summary[name]
        return wording.size(value if isinstance(value, int) else None)

    seconds = summary["seconds"]
    figures = {_("duration"): _say_seconds(seconds if isinstance(seconds, float) else 0.0)}
    if summary["connected_processes"]:
        figures[_("peak allocated")] = size("peak_allocated")
        figures[_("peak driver")] = size("peak_driver")
        figures[_("largest cache")] = size("largest_cache")
    figures[_("peak footprint")] = size("peak_footprint")
    if summary["connected_processes"]:
        figures[_("frees")] = str(summary["frees"])
    lines = [f"mpsbar: {summary['how']}"]
    lines += [f"  {line.rstrip()}" for line in cells.align(list(figures.items()))]
    if not summary["connected_processes"]:
        unknown = _(
            "None of its processes was connected when mpsbar checked (once a second), so its GPU "
            "memory is unknown."
        )
        lines.append(f"  {unknown}")
    children = summary["failed_children"]
    lines += [
        f"  {child['name']} ({child['pid']}): {child['how']}"
        for child in (children if isinstance(children, list) else ())
    ]
    steps = summary["next_steps"]
    lines += [f"  → {step}" for step in (steps if isinstance(steps, list) else ())]
    return "\n".join(lines)


def _say_seconds(seconds: float) -> str:
    """Returns a time with more digits than elsewhere, as time(1) does: 3.21 s, 12:05, 3:12:05."""
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
