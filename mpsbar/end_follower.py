"""Watches the ends of processes and finds out why: exit status, last words, the system's reports.

Part of the monitor's ticking thread. At a tick one call asks for ends; files are looked at only
after one. macOS writes its reports seconds later, so a verdict may be corrected twice.
"""

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from mpsbar.core.clock import GAP
from mpsbar.core.end_evidence import build_evidence, may_be_reported
from mpsbar.core.endings import EndEvidence, Exit, ExitStatus, SystemReports
from mpsbar.core.events import EndedProcess
from mpsbar.core.machine import is_same_start
from mpsbar.core.process_tracker import EndedPairs, TrackedProcess
from mpsbar.core.recent_conditions import RESET_SECONDS, RecentConditions
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.verdicts import SIGTERM, judge_end
from mpsbar.system.last_words import find_last_words
from mpsbar.system.platform import Computer, EndedPid, ReportReader

# When to look for reports of macOS after an end: they appear within seconds.
RECHECK_SECONDS = (3.0, 10.0)
_SAME_RUN_SECONDS = 60.0
_MAX_UNSETTLED = 100
_MAX_RECENT = 200
_RANK = re.compile(r"(.+) rank \d+ of (\d+)")


@dataclass(slots=True)
class _Unsettled:
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
        self._unsettled: list[_Unsettled] = []
        self._recent: deque[tuple[float, int | None, EndedProcess]] = deque(maxlen=_MAX_RECENT)

    def poll(self) -> dict[int, Exit]:
        """The watched processes that have ended since the last call, by pid."""
        return {found.pid: found for found in self._watch.poll()}

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
        """The same ends with their verdicts. Those that were ended by a launcher come last."""

        def is_asked_to_end(item: tuple[TrackedProcess, EndedProcess]) -> bool:
            found = exits.get(item[0].pid)
            return found is not None and found.status is not None and found.status.signal == SIGTERM

        explained: EndedPairs = []
        for tracked, end in sorted(ended, key=is_asked_to_end):
            found = exits.get(tracked.pid)
            is_same = found is not None and found.started == tracked.started
            explained.append(
                (tracked, self._explain(snapshot, tracked, end, found if is_same else None))
            )
        return explained

    def recheck(self, now: float) -> list[tuple[TrackedProcess, EndedProcess]]:
        """Ends whose verdict has changed or is final now."""
        changed = []
        for unsettled in self._unsettled[:]:
            # A clock that was set back must not keep it for ever.
            is_due = unsettled.due[0] <= now or now < unsettled.end.ended
            if not is_due:
                continue
            unsettled.due.pop(0)
            reports = self._read_reports(unsettled.end, unsettled.evidence.status)
            before = unsettled.evidence
            unsettled.evidence = replace(
                before,
                reports=_merge(before.reports, reports),
                gpu_reset=before.gpu_reset or self.conditions.was_reset(unsettled.end.ended),
            )
            verdict = judge_end(unsettled.evidence)
            is_final = not unsettled.due or reports.crash is not None or reports.jetsam is not None
            end = replace(unsettled.end.with_verdict(verdict), is_settled=is_final)
            if is_final:
                self._unsettled.remove(unsettled)
            if end != unsettled.end:
                unsettled.end = end
                changed.append((unsettled.tracked, end))
        return changed

    def explain_unseen(self, ended: Iterable[EndedProcess], now: float) -> list[EndedProcess]:
        """Ends that happened while mpsbar was not running: from what was left behind."""
        boot = self._computer.read_boot()
        return [
            explain_unseen(end, now, self._reports, boot, self._computer.is_mac) for end in ended
        ]

    def close(self) -> None:
        self._watch.close()

    def _explain(
        self, snapshot: Snapshot, tracked: TrackedProcess, end: EndedProcess, found: Exit | None
    ) -> EndedProcess:
        status = None if found is None else found.status
        record = None
        if tracked.is_connected:
            record = find_last_words(tracked.pid, tracked.started, last_seen=tracked.last)
        end = _set_time(end, tracked, found, None if record is None else record.ended)
        stopped = snapshot.stopped.get(tracked.pid)
        was_asked = stopped is not None and stopped.state == "asked"
        was_asked &= stopped is not None and is_same_start(stopped.started, tracked.started)
        known = EndEvidence(
            status=status,
            is_connected=tracked.is_connected,
            leaves_words=tracked.leaves_words,
            words=record,
            stop_signal=None
            if not was_asked or stopped is None
            else ("SIGTERM" if stopped.firmly else "SIGINT"),
            became=found is None and self._became_another(tracked),
            parent_failed=self._find_failed_rank(tracked, end.ended),
            held=end.held,
            peak=end.peak,
            torch=tracked.torch,
            is_mac=self._computer.is_mac,
            reports=self._read_reports(end, status),
        )
        evidence = build_evidence(known, end.ended, self.conditions)
        verdict = judge_end(evidence)
        has_room = len(self._unsettled) < _MAX_UNSETTLED  # else what is known now is shown at once
        may_change = has_room and may_be_reported(evidence)
        end = replace(end.with_verdict(verdict), is_settled=not may_change)
        if may_change:
            due = [end.ended + seconds for seconds in RECHECK_SECONDS]
            self._unsettled.append(_Unsettled(tracked, end, evidence, due))
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
        """Another child of the same launcher that failed just before: torchrun ends the others."""
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
    found = reports.read(
        EndedPid(end.pid, end.started, end.ended, now, is_exact=False, restarted=is_restarted)
    )
    known = EndEvidence(
        is_connected=True,
        words=record,
        restarted=is_restarted,
        held=end.held,
        peak=end.peak,
        is_mac=is_mac,
        reports=found,
    )
    end = end.with_verdict(judge_end(build_evidence(known, end.ended)))
    if record is None or record.ended < end.ended:
        return end
    return set_end(end, record.ended, record.started)


def set_end(end: EndedProcess, ended: float, started: float | None = None) -> EndedProcess:
    """The same with another time of its end, and how long it ran till then."""
    began = end.started if end.started is not None else started
    ran = end.ran if began is None else max(0.0, ended - began)
    return replace(end, ended=ended, ran=ran)


def _set_time(
    end: EndedProcess, tracked: TrackedProcess, found: Exit | None, reported_time: float | None
) -> EndedProcess:
    """When it ended: what Python said itself is exact, a tick is not."""
    if reported_time is not None and tracked.last - GAP <= reported_time <= end.ended + 1:
        end = replace(end, ended=reported_time, was_seen=True)
    elif found is not None and not end.was_seen:  # the computer slept meanwhile
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
