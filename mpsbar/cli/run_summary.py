"""mpsbar run --summary: stay as the parent of a command, and say at its end what it used."""

import json
import shutil
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from mpsbar.core.endings import EndEvidence, ExitStatus, LastWords, Reports
from mpsbar.core.events import EndedProcess
from mpsbar.core.fallbacks import Fallbacks, merge_operations
from mpsbar.core.machine import Pressure
from mpsbar.core.naming import name_process
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.core.verdicts import EndVerdict, judge_end
from mpsbar.language import _, english
from mpsbar.monitor import Monitor
from mpsbar.system import this_computer
from mpsbar.system.files import replace_file
from mpsbar.system.foreground import CommandEnd, end_like, run_command
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

_INTERVAL = 1.0
_MOST_PARENTS = 20
_MOST_OTHERS = 5
_MOST_NOTED = 20
# How long before the end memory counts.
_MEMORY_SECONDS = 60.0
_RESET_SECONDS = 5.0
# macOS writes a crash report within about a second.
_REPORT_SECONDS = 3.0
# xnu's sys/reason.h: OS_REASON_JETSAM, and the code of a kill for lack of swap.
_JETSAM, _LOW_SWAP = 1, 13


@dataclass
class Usage:
    """The most of each that the command and its children used at one time, in bytes."""

    allocated: int | None = None
    driver: int | None = None
    cached: int | None = None
    footprint: int | None = None
    frees: dict[int, int] = field(default_factory=dict)  # by pid
    workers: set[int] = field(default_factory=set)
    leaving: set[int] = field(default_factory=set)  # a record when they end by themselves
    devices: set[str] = field(default_factory=set)  # that they used
    torch: str | None = None  # its version, where one of them has it

    def note(self, name: str, value: int | None) -> None:
        if value is not None:
            setattr(self, name, max(value, getattr(self, name) or 0))


class Collector:
    """Watches the command by a monitor of its own, on the monitor's thread."""

    def __init__(self, computer: Computer) -> None:
        self.usage = Usage()
        self._computer = computer
        self._root: int | None = None
        self._is_ours: dict[int, bool] = {}
        self.others: dict[int, EndedProcess] = {}  # ends of its children
        self._monitor = Monitor(computer, interval=_INTERVAL)
        self._lock = threading.Lock()
        self.reports = computer.read_reports()
        self._memory: deque[tuple[float, Pressure | None, int | None]] = deque(maxlen=120)
        self._recoveries: int | None = None  # of the GPU
        self._reset_at: float | None = None

    def start(self, pid: int) -> None:
        self._root = pid
        self._is_ours[pid] = True
        self.reports.note(pid)  # what can be read only while it lives
        self._monitor.start(self._note)

    def close(self) -> None:
        self._monitor.close()

    def _note(self, snapshot: Snapshot) -> None:
        with self._lock:
            workers = [worker for worker in snapshot.workers if self._belongs(worker.pid)]
            processes = [p for p in snapshot.processes or () if self._belongs(p.pid)]
            usage, machine = self.usage, snapshot.machine
            self._memory.append((snapshot.time, machine.pressure, machine.swap_used))
            self._note_reset(snapshot)
            self.reports.refresh()
            usage.workers |= {worker.pid for worker in workers}
            usage.leaving |= {worker.pid for worker in workers if worker.leaves_words}
            for name in ("allocated", "driver", "cached"):
                usage.note(name, _total(workers, name))
            for worker in workers:
                usage.devices |= {backend.name for backend in worker.in_use}
                usage.torch = usage.torch or worker.frameworks.get("torch")
                usage.note("allocated", worker.total(lambda backend: backend.peak))
                if worker.last_free is not None:
                    usage.frees[worker.pid] = worker.last_free.number
            sizes = [p.footprint for p in processes if p.footprint is not None]
            usage.note("footprint", sum(sizes) if sizes else None)
            for process in processes:
                usage.note("footprint", process.footprint_peak)
            for end in snapshot.ended:
                if end.verdict is not None and self._is_ours.get(end.pid) and end.pid != self._root:
                    self.others[end.pid] = end

    def _note_reset(self, snapshot: Snapshot) -> None:
        count, before = snapshot.machine.gpu.recoveries, self._recoveries
        if count is not None:
            self._recoveries = count
            if before is not None and count > before:
                self._reset_at = snapshot.time

    def was_reset(self, ended: float) -> bool:
        """Whether the GPU was reset just before the end, as far as its count shows."""
        return self._reset_at is not None and abs(self._reset_at - ended) <= _RESET_SECONDS

    def read_memory(self, ended: float) -> tuple[Pressure | None, int | None]:
        """The worst pressure and the growth of swap in the minute before the end."""
        near = [reading for reading in self._memory if ended - _MEMORY_SECONDS <= reading[0]]
        levels = [pressure for _, pressure, _ in near if pressure is not None]
        swaps = [swap for _, _, swap in near if swap is not None]
        worst = max(levels, key=get_args(Pressure).index, default=None)
        return worst, max(swaps) - swaps[0] if swaps else None

    def _belongs(self, pid: int) -> bool:
        """Whether the command started it, at whatever remove; asked once for each process."""
        if pid not in self._is_ours:
            self._is_ours[pid] = self._find_root(pid)
        return self._is_ours[pid]

    def _find_root(self, pid: int) -> bool:
        for _step in range(_MOST_PARENTS):
            try:
                parent = self._computer.read_details(pid).parent
            except OSError:
                return False
            if parent is None or parent <= 1:
                return False
            if parent == self._root or self._is_ours.get(parent):
                return True
            pid = parent
        return False


def _total(workers: Sequence[Worker], name: str) -> int | None:
    values = [worker.total(lambda backend: getattr(backend, name)) for worker in workers]
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def run_explained(command: Sequence[str], environ: Mapping[str, str], json_file: str | None) -> int:
    """The same, and what fell back to the CPU. OSError: the command could not be started."""
    from mpsbar.workers.explain import build_explain_environment, read_explanation

    try:
        place = tempfile.TemporaryDirectory(prefix="mpsbar-explain-", ignore_cleanup_errors=True)
    except OSError as problem:
        print(
            _("mpsbar: not explained: {problem}").format(problem=problem.strerror or problem),
            file=sys.stderr,
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
    """OSError: the command could not be started."""
    computer = this_computer()
    collector = Collector(computer)
    try:
        end = run_command(command, environ, collector.start, computer.read_exit_reason)
    finally:
        collector.close()
    explanation = None if explain is None else explain()
    if explanation is not None:
        for line in explanation.stderr:
            print(line, file=sys.stderr)
        for pid, counted in explanation.by_process.items():
            complete_fallbacks(pid, end.began, counted)
    found = (
        find_first_fallbacks(end, collector.usage) if explanation is None else explanation.fallbacks
    )
    verdict = judge_command(end, computer, collector)
    with nullcontext() if json_file is None else english():
        summary = build_summary(command, end, collector, verdict)
        summary |= _build_fallbacks(found)
    for seen in _list_ends(name_command(command), end, collector, verdict):
        note_end(seen)
    if json_file is not None:
        try:
            replace_file(Path(json_file).expanduser(), (json.dumps(summary) + "\n").encode())
        except OSError as problem:
            print(
                _("mpsbar: couldn't write {file}: {problem}").format(
                    file=json_file, problem=problem.strerror or problem
                ),
                file=sys.stderr,
            )
    else:
        print(render_summary(summary), file=sys.stderr)
        if found is not None:
            lines = render_fallbacks(found, read_native_operations(), str(Path.cwd()))
            print("\n".join(f"  {line}" for line in lines), file=sys.stderr)
    return end_like(end.status)


def name_command(command: Sequence[str]) -> str:
    return name_process(tuple(command), executable=shutil.which(command[0]))


def _list_ends(
    name: str, end: CommandEnd, collector: Collector, verdict: EndVerdict
) -> list[EndedProcess]:
    """The ends of processes that leave a record, for `mpsbar why`: the exit code is the parent's to
    know, and one that was killed left nothing."""
    usage = collector.usage
    peak = usage.allocated if usage.workers == {end.pid} else None
    own = EndedProcess(end.pid, end.began, name, end.ended, peak=peak, verdict=verdict)
    others = [other for other in collector.others.values() if other.how != "unknown"]
    return [each for each in (own, *others[:_MOST_NOTED]) if each.pid in usage.leaving]


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
        usage.leaving.add(words.pid)
    usage.note("footprint", end.most_resident)
    others = [
        {"pid": other.pid, "name": other.name, "how": endings.say_briefly(other.verdict)}
        for other in list(collector.others.values())[:_MOST_OTHERS]
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
    """What the processes of the command left behind; also those that ended before anyone looked:
    a child's record names its parent."""
    rest = [words for words in read_last_words(end.began) if words.attached >= end.began - 1]
    ours, found = {end.pid, *usage.workers}, list[LastWords]()
    while more := [words for words in rest if words.pid in ours or words.parent in ours]:
        found += more
        ours |= {words.pid for words in more}
        rest = [words for words in rest if words not in more]
    return found


def find_first_fallbacks(end: CommandEnd, usage: Usage) -> Fallbacks | None:
    """What is known without --explain: of each process the first operation that torch warned of.

    None: none of them used MPS, as far as is known. A process that was killed left nothing, one
    with many modules did not look at all of them: there may be more.
    """
    records = _read_records(end, usage)
    found = [words.fallbacks for words in records if words.fallbacks is not None]
    torch = usage.torch or next((t for w in records if (t := w.frameworks.get("torch"))), None)
    used = usage.devices or {"mps" for words in records if "driver" in words.memory}
    if not found and (torch is None or "mps" not in used):
        return None
    operations = merge_operations(one for each in found for one in each.operations)
    is_complete = usage.workers <= {words.pid for words in records}
    is_complete &= all(words.knows_fallbacks for words in records)
    return Fallbacks(operations, torch, is_complete=is_complete, is_counted=False)


def _build_fallbacks(found: Fallbacks | None) -> dict[str, object]:
    """`cpu_fallbacks` is null where they were not counted."""
    if found is None or found.torch is None:
        return {"cpu_fallbacks": None, "fallbacks": None, "fallbacks_complete": None}
    return {
        "cpu_fallbacks": found.count if found.is_counted else None,
        "fallbacks": build_fallbacks(found, read_native_operations()),
        "fallbacks_complete": found.is_complete and found.is_counted,
    }


def judge_command(end: CommandEnd, computer: Computer, collector: Collector) -> EndVerdict:
    status = parse_wait_status(end.status)
    reason, why = end.exit_reason, None
    if reason is not None and reason[0] == _JETSAM:
        why = "low-swap" if reason[1] == _LOW_SWAP else f"jetsam reason {reason[1]}"
    is_mac = computer.footprint_kind == "footprint"
    words = find_last_words(end.pid, end.began)
    pressure, swap_growth = collector.read_memory(end.ended)
    return judge_end(
        EndEvidence(
            status=status,
            is_connected=bool(collector.usage.workers),
            words=words,
            pressure=pressure,
            swap_growth=swap_growth,
            gpu_reset=collector.was_reset(end.ended),
            exit_reason=why,
            is_mac=is_mac,
            torch=words.frameworks.get("torch") if words is not None else collector.usage.torch,
            reports=_read_reports(end, status, collector.reports, is_mac),
        )
    )


def _read_reports(
    end: CommandEnd, status: ExitStatus | None, reader: ReportReader, is_mac: bool
) -> Reports:
    if status is None or status.signal is None:
        return Reports()
    ended = EndedPid(end.pid, None, end.began, end.ended, status.signal)
    found = reader.read(ended)
    waited = 0.0
    while is_mac and status.signal in (4, 5, 6, 8, 10, 11) and found.crash is None:
        if waited >= _REPORT_SECONDS:
            break
        threading.Event().wait(0.5)
        waited += 0.5
        found = reader.read(ended)
    return found


def render_summary(summary: Mapping[str, object]) -> str:
    """What a person reads at the end of a run."""

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
    widest = max(map(cells.width, figures))
    lines = [f"mpsbar: {summary['how']}"]
    lines += [f"  {cells.fit(name, widest)}  {value}" for name, value in figures.items()]
    if not summary["connected_processes"]:
        unknown = _(
            "No process of it was connected when mpsbar looked, once a second: its GPU memory is "
            "unknown."
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
    """With more figures than elsewhere, as time(1) has: 3.21 s, 12:05, 3:12:05."""
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
