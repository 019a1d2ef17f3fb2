"""Watches the ends of processes and finds out why: exit status, last words, the system's reports.

Part of the monitor's ticking thread. At a tick one call asks for ends; files are looked at only
after one. macOS writes its reports seconds later, so a verdict may be corrected twice.
"""

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from mpsbar.core.end_evidence import build_evidence, may_be_reported
from mpsbar.core.endings import EndEvidence, Exit, ExitStatus, SystemReports
from mpsbar.core.events import EndedProcess
from mpsbar.core.machine import is_same_start
from mpsbar.core.process_tracker import EndedPairs, TrackedProcess
from mpsbar.core.recent_conditions import RESET_SECONDS, RecentConditions
from mpsbar.core.sleep_gap import GAP
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.verdicts import SIGTERM, judge_end
from mpsbar.system.last_words import find_last_words
from mpsbar.system.platform import Computer, EndedPid, ReportReader

# When to look for reports of macOS after an end: they appear within seconds.
RECHECK_SECONDS = (3.0, 10.0)
_SAME_RUN_SECONDS = 60.0
_MAX_PENDING = 100
_MAX_RECENT = 200
_RANK = re.compile(r"(.+) rank \d+ of (\d+)")


@dataclass(slots=True)
class _PendingVerdict:
    """An end whose verdict may change, because the system may still write about it."""

    tracked: TrackedProcess
    end: EndedProcess
    evidence: EndEvidence
    due: list[float]  # when to look for reports, the next first


class EndFollower:
    def __init__(self, computer: Computer) -> None:
        self._computer = computer
        self._watch = computer.watch_exits()
        self._reports: ReportReader = computer.read_reports()
        self._known: set[tuple[int, float]] = set()
        self.conditions = RecentConditions()
        self._pending: list[_PendingVerdict] = []
        self._recent: deque[tuple[float, int | None, EndedProcess]] = deque(maxlen=_MAX_RECENT)

    def poll(self) -> dict[int, Exit]:
        """Returns the watched processes that have ended since the last call, by pid."""
        return {exit_.pid: exit_ for exit_ in self._watch.poll()}

    def follow(self, snapshot: Snapshot) -> None:
        """Watch what is new; remember what will be needed when a process ends."""
        present = {(process.pid, process.started) for process in snapshot.processes or ()}
        for pid, started in present - self._known:
            self._watch.add(pid, started)
            self._reports.note(pid)
        if snapshot.processes is not None:
            self._known = present
        self.conditions.add(snapshot)
        self._reports.refresh()

    def explain(self, snapshot: Snapshot, ended: EndedPairs, exits: dict[int, Exit]) -> EndedPairs:
        """Returns the same ends with their verdicts; those that a launcher ended come last."""

        def is_asked_to_end(item: tuple[TrackedProcess, EndedProcess]) -> bool:
            exit_ = exits.get(item[0].pid)
            return exit_ is not None and exit_.status is not None and exit_.status.signal == SIGTERM

        explained: EndedPairs = []
        for tracked, end in sorted(ended, key=is_asked_to_end):
            exit_ = exits.get(tracked.pid)
            is_same = exit_ is not None and exit_.started == tracked.started
            explained.append(
                (tracked, self._explain(snapshot, tracked, end, exit_ if is_same else None))
            )
        return explained

    def recheck(self, now: float) -> list[tuple[TrackedProcess, EndedProcess]]:
        """Returns the ends whose verdict has changed or is final now."""
        changed = []
        for pending in self._pending[:]:
            # A clock that was set back must not keep it for ever.
            is_due = pending.due[0] <= now or now < pending.end.ended
            if not is_due:
                continue
            pending.due.pop(0)
            reports = self._read_reports(pending.end, pending.evidence.status)
            before = pending.evidence
            pending.evidence = replace(
                before,
                reports=_merge(before.reports, reports),
                gpu_reset=before.gpu_reset or self.conditions.was_reset(pending.end.ended),
            )
            verdict = judge_end(pending.evidence)
            is_final = not pending.due or reports.crash is not None or reports.jetsam is not None
            end = replace(pending.end.with_verdict(verdict), is_settled=is_final)
            if is_final:
                self._pending.remove(pending)
            if end != pending.end:
                pending.end = end
                changed.append((pending.tracked, end))
        return changed

    def explain_unseen(self, ended: Iterable[EndedProcess], now: float) -> list[EndedProcess]:
        """Explains ends that happened while mpsbar was not running, from what was left behind."""
        boot = self._computer.read_boot()
        return [
            explain_unseen(end, now, self._reports, boot, self._computer.is_mac) for end in ended
        ]

    def close(self) -> None:
        self._watch.close()

    def _explain(
        self, snapshot: Snapshot, tracked: TrackedProcess, end: EndedProcess, exit_: Exit | None
    ) -> EndedProcess:
        status = None if exit_ is None else exit_.status
        record = None
        if tracked.is_connected:
            record = find_last_words(tracked.pid, tracked.started, last_seen=tracked.last)
        end = _set_time(end, tracked, exit_, None if record is None else record.ended)
        stopped = snapshot.stopped.get(tracked.pid)
        was_asked = stopped is not None and stopped.state == "asked"
        was_asked &= stopped is not None and is_same_start(stopped.started, tracked.started)
        known = EndEvidence(
            status=status,
            is_connected=tracked.is_connected,
            writes_exit_record=tracked.writes_exit_record,
            words=record,
            stop_signal=None
            if not was_asked or stopped is None
            else ("SIGTERM" if stopped.firmly else "SIGINT"),
            became=exit_ is None and self._became_another(tracked),
            parent_failed=self._find_failed_rank(tracked, end.ended),
            held=end.held,
            peak=end.peak,
            torch=tracked.torch,
            is_mac=self._computer.is_mac,
            reports=self._read_reports(end, status),
        )
        evidence = build_evidence(known, end.ended, self.conditions)
        verdict = judge_end(evidence)
        has_room = len(self._pending) < _MAX_PENDING  # else what is known now is shown at once
        may_change = has_room and may_be_reported(evidence)
        end = replace(end.with_verdict(verdict), is_settled=not may_change)
        if may_change:
            due = [end.ended + seconds for seconds in RECHECK_SECONDS]
            self._pending.append(_PendingVerdict(tracked, end, evidence, due))
        self._recent.append((end.ended, tracked.parent, end))
        return end

    def _read_reports(self, end: EndedProcess, status: ExitStatus | None) -> SystemReports:
        number = None if status is None else status.signal
        # A scan misses a process up to a minute after its end; the kernel says it at once.
        earliest = end.ended - (GAP if status is None else RESET_SECONDS)
        return self._reports.read(EndedPid(end.pid, end.started, earliest, end.ended, number))

    def _became_another(self, tracked: TrackedProcess) -> bool:
        """Returns whether it runs on with another command line: exec() keeps pid and start."""
        if tracked.started is None or not self._watch.is_running(tracked.pid, tracked.started):
            return False
        try:
            details = self._computer.read_details(tracked.pid)
        except OSError:
            return False
        return details.started == tracked.started and details.command != tracked.command

    def _find_failed_rank(self, tracked: TrackedProcess, ended: float) -> str | None:
        """Finds a child of the same launcher that failed just before: torchrun ends the others."""
        run = _RANK.fullmatch(tracked.name)
        if run is None or tracked.parent in (None, 0, 1):
            return None  # two runs of one terminal have a parent in common too
        for time, parent, other in self._recent:
            same = _RANK.fullmatch(other.name)
            if parent != tracked.parent or same is None or same.groups() != run.groups():
                continue
            verdict = other.verdict
            has_failed = verdict is not None and not verdict.is_normal
            is_near = 0 <= ended - time <= _SAME_RUN_SECONDS
            if has_failed and is_near and other.how != "other_rank":
                return f"{other.name} ({other.pid})"
        return None


def explain_unseen(
    end: EndedProcess, now: float, reports: ReportReader, boot: float | None, is_mac: bool
) -> EndedProcess:
    """Explains an end that nobody saw; its `ended` is when the process was last seen."""
    record = find_last_words(end.pid, end.started, last_seen=end.ended, or_of_parent=True)
    if record is not None and record.verdict is not None:  # `mpsbar run --summary` saw it
        verdict = replace(record.verdict, fallbacks=record.fallbacks)
        return set_end(end.with_verdict(verdict), record.ended, record.started)
    is_restarted = boot is not None and boot > end.ended
    system_reports = reports.read(
        EndedPid(end.pid, end.started, end.ended, now, is_exact=False, restarted=is_restarted)
    )
    known = EndEvidence(
        is_connected=True,
        words=record,
        restarted=is_restarted,
        held=end.held,
        peak=end.peak,
        is_mac=is_mac,
        reports=system_reports,
    )
    end = end.with_verdict(judge_end(build_evidence(known, end.ended)))
    if record is None or record.ended < end.ended:
        return end
    return set_end(end, record.ended, record.started)


def set_end(end: EndedProcess, ended: float, started: float | None = None) -> EndedProcess:
    """Returns the process with another end time, and the run time that follows."""
    began = end.started if end.started is not None else started
    ran = end.ran if began is None else max(0.0, ended - began)
    return replace(end, ended=ended, ran=ran)


def _set_time(
    end: EndedProcess, tracked: TrackedProcess, exit_: Exit | None, reported_time: float | None
) -> EndedProcess:
    """Sets when it ended: what Python said itself is exact, a tick is not."""
    if reported_time is not None and tracked.last - GAP <= reported_time <= end.ended + 1:
        end = replace(end, ended=reported_time, was_seen=True)
    elif exit_ is not None and not end.was_seen:  # the computer slept meanwhile
        end = replace(end, ended=tracked.last)
    if tracked.started is not None:
        end = replace(end, ran=max(0.0, end.ended - tracked.started))
    return end


def _merge(before: SystemReports, now: SystemReports) -> SystemReports:
    return SystemReports(
        now.crash or before.crash, now.jetsam or before.jetsam, now.gpu_event or before.gpu_event,
        now.panic or before.panic, now.kernel_log or before.kernel_log,
        before.cgroup_kill if now.cgroup_kill is None else now.cgroup_kill, now.unreadable,
    )  # fmt: skip
