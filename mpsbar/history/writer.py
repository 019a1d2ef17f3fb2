"""Collects rows for the history in memory and writes them together. Each process is a run."""

import json
import sqlite3
from collections import deque
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpsbar.core.actions import Freed, Limited
from mpsbar.core.counters import RECORDED
from mpsbar.core.events import Alert, EndedProcess, Event
from mpsbar.core.machine import SAME_START
from mpsbar.core.process_tracker import ENDED_SHOWN_SECONDS, EndedPairs, Sizes, TrackedProcess
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.trends import gpu_memory
from mpsbar.core.verdicts import build_verdict_json
from mpsbar.history.database import read_columns
from mpsbar.history.reader import open_to_read, parse_verdict

# While nothing changes, one row a minute shows that mpsbar was running.
STILL_SECONDS = 55.0
# Enough for an hour in which the disk is full; then the oldest rows are lost.
_MAX_ROWS = 40_000
# Limits the file even if somebody starts processes without end.
MAX_PROCESSES = 200
# Processes that came and went while nothing could be written; then the oldest are lost.
_MAX_WAITING = 5_000
_MAX_DETAILS = 2_000
_MAX_NAME = 300
_MAX_ENDED = 20
_FIND = (
    "SELECT id FROM runs WHERE pid = ? AND (abs(started - ?) < ? OR (started IS NULL AND"
    " ended IS NULL)) ORDER BY id DESC LIMIT 1"
)
_BEGIN = "INSERT INTO runs (pid, started, name, first, last) VALUES (?, ?, ?, ?, ?)"
_UPDATE = f"""
    UPDATE runs SET started = ?, name = ?, device = ?, head = ?, connected = ?, last = max(last, ?),
        peak = coalesce(max(peak, ?), peak, ?),
        footprint_peak = coalesce(max(footprint_peak, ?), footprint_peak, ?),
        {", ".join(f"{name} = ?" for name in RECORDED)}, ended = ?, how = ?, verdict = ?
    WHERE id = ?"""  # noqa: S608 - our own names
_SAMPLE = (
    f"INSERT OR IGNORE INTO samples (time, run, {', '.join(RECORDED)})"  # noqa: S608
    f" VALUES (?, ?{', ?' * len(RECORDED)})"
)
_MACHINE = "INSERT OR IGNORE INTO machine VALUES (?, ?, ?, ?, ?, ?, ?)"
_EVENT = (
    "INSERT INTO events (time, kind, code, level, pid, name, size, phase, details)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# What became known later of an end that is in the file already.
_CORRECT = (
    "UPDATE runs SET ended = ?, how = ?, verdict = ? WHERE pid = ? AND ended IS NOT NULL"
    " AND (abs(started - ?) < ? OR (started IS NULL AND ? IS NULL))"
)
_MAX_VERDICT = 4_000  # characters
_ENDED = (
    "SELECT pid, started, name, ended, how, coalesce(peak, footprint_peak), held, {verdict},"
    " first FROM runs"
    " WHERE ended BETWEEN ? AND ? AND {heads} AND (connected OR last - first >= 30000)"
    " ORDER BY ended DESC LIMIT ?"
)

_Values = tuple[int | None, ...]  # in the order of RECORDED
# SQLite cannot store such a value: a whole number beyond 64 bits, a text that is no Unicode.
_NOT_STORABLE = (OverflowError, ValueError, sqlite3.ProgrammingError, sqlite3.InterfaceError)


class PendingRows:
    """Rows that wait to be written, at most _MAX_ROWS."""

    def __init__(self) -> None:
        self.machine: deque[tuple[Any, ...]] = deque(maxlen=_MAX_ROWS // 20)
        self.samples: deque[tuple[int, TrackedProcess, _Values]] = deque(maxlen=_MAX_ROWS)
        self.events: deque[tuple[Any, ...]] = deque(maxlen=_MAX_ROWS // 40)
        # By id() of the process: those whose row in `runs` must be updated.
        self.seen: dict[int, TrackedProcess] = {}
        self.ended: dict[int, tuple[TrackedProcess, EndedProcess]] = {}
        self.corrected: deque[EndedProcess] = deque(maxlen=_MAX_WAITING)
        self.is_urgent = False  # write soon: it must not be lost if mpsbar ends now
        self._written: dict[int, tuple[TrackedProcess, Sizes, float]] = {}

    @property
    def is_empty(self) -> bool:
        return not (self.machine or self.seen or self.events or self.ended or self.corrected)

    def add(
        self,
        snapshot: Snapshot,
        present: Iterable[TrackedProcess],
        ended: EndedPairs,
    ) -> None:
        now, time = snapshot.time, int(snapshot.time * 1000)
        self.machine.append((time, *_read_machine(snapshot)))
        written = self._written
        for process, end in ended:
            if process.pid in written and written[process.pid][0] is process:
                del written[process.pid]
                self.ended[id(process)] = (process, end)
                self.seen[id(process)] = process
                self.is_urgent |= process.is_connected
        for process in present:
            before = written.get(process.pid)
            if before is None and len(written) >= MAX_PROCESSES:
                continue
            if before is None or before[0] is not process:
                self.is_urgent |= process.is_connected  # it is new
            elif before[1] == process.values and 0 <= now - before[2] < STILL_SECONDS:
                continue
            if process.last == now:
                written[process.pid] = (process, process.values, now)
                self.samples.append((time, process, tuple(process.values.values())))
                self.seen[id(process)] = process
        _drop_oldest(self.seen)
        _drop_oldest(self.ended)

    def correct(self, end: EndedProcess) -> None:
        """Change the row of a process that has ended: more is known of it now."""
        for key, (process, waiting) in self.ended.items():
            if (waiting.pid, waiting.started) == (end.pid, end.started):
                self.ended[key] = (process, end)
                return
        self.corrected.append(end)
        self.is_urgent = True

    def add_all(self) -> None:
        """Give every recorded process a row, because a file that was just opened may lack it."""
        for process, _, _ in self._written.values():
            self.seen[id(process)] = process

    def add_events(self, events: Iterable[Event]) -> None:
        for event in events:
            row = _build_event(event)
            if row is not None:
                self.events.append(row)
                self.is_urgent = True

    def clear(self) -> None:
        """Forget the rows, once they are written."""
        self.machine.clear()
        self.samples.clear()
        self.events.clear()
        self.seen.clear()
        self.ended.clear()
        self.corrected.clear()
        self.is_urgent = False


def _drop_oldest(waiting: dict[int, Any]) -> None:
    while len(waiting) > _MAX_WAITING:
        del waiting[next(iter(waiting))]


def _build_event(event: Event) -> tuple[Any, ...] | None:
    """The row of an alert, a Free or a limit; an end has none, it is part of the row of its run."""
    time, what = int(event.time * 1000), event.what
    if isinstance(what, Freed):
        name = what.name[:_MAX_NAME]
        cause = None if what.cause is None else json.dumps({"cause": what.cause})
        return (time, "free", what.state, "ok", what.pid, name, what.freed, "", cause)
    if isinstance(what, Limited):
        name = what.name[:_MAX_NAME]
        return (time, "limit", what.state, "ok", what.pid, name, what.asked, "", None)
    if not isinstance(what, Alert) or what.kind == "ended":
        return None
    values = json.dumps(what.reason.values if what.reason else {})
    details = values if len(values) < _MAX_DETAILS else None
    name = what.name[:_MAX_NAME] if what.name else ""
    return (time, "alert", what.code, what.level, what.pid, name, None, what.kind, details)


def _read_machine(snapshot: Snapshot) -> tuple[int | None, ...]:
    machine = snapshot.machine
    total, available = machine.memory_total, machine.memory_available
    used = None if total is None or available is None else max(0, total - available)
    busy = machine.gpu.utilization
    return (
        used, machine.swap_used, gpu_memory(snapshot), None if busy is None else round(busy),
        total, machine.gpu.memory_budget,
    )  # fmt: skip


class RunWriter:
    """Writes rows, and knows the number of each process in the table `runs`."""

    def __init__(self) -> None:
        # By id() of the process; the process is stored too, so that its id() is not reused.
        self._ids: dict[int, tuple[TrackedProcess, int]] = {}

    def write(self, connection: sqlite3.Connection, rows: PendingRows) -> int:
        """Write all rows in one transaction; rows that exist already are never replaced.

        Returns how many rows SQLite cannot store: they are left out, the others are written.
        """
        new: dict[int, tuple[TrackedProcess, int]] = {}
        left_out = 0
        connection.execute("BEGIN IMMEDIATE")
        try:
            for process in rows.seen.values():
                left_out += not self._write_run(connection, process, rows, new)
            known = self._ids | new
            samples = [
                (time, known[id(process)][1], *values)
                for time, process, values in rows.samples
                if id(process) in known
            ]
            for statement, values in (
                (_SAMPLE, samples),
                (_MACHINE, rows.machine),
                (_EVENT, rows.events),
            ):
                left_out += sum(not _execute(connection, statement, row) for row in values)
            for end in rows.corrected:
                started = end.started
                row = (*_describe_end(end), end.pid, started, SAME_START, started)
                left_out += not _execute(connection, _CORRECT, row)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._ids |= new
        for key in rows.ended:
            self._ids.pop(key, None)
        rows.clear()
        return left_out

    def _write_run(
        self,
        connection: sqlite3.Connection,
        process: TrackedProcess,
        rows: PendingRows,
        new: dict[int, tuple[TrackedProcess, int]],
    ) -> bool:
        """Returns False if SQLite cannot store it."""
        try:
            number = self._find(connection, process, new)
        except _NOT_STORABLE:
            return False
        return _execute(connection, _UPDATE, (*_describe(process, rows), number))

    def end_unseen(self, connection: sqlite3.Connection, now: float) -> tuple[EndedProcess, ...]:
        """Mark runs of an earlier recorder as ended; return all that ended in the last day."""
        mine = ", ".join(str(number) for _, number in self._ids.values())
        connection.execute(
            "UPDATE runs SET ended = last, how = 'unseen'"  # noqa: S608 - numbers
            f" WHERE ended IS NULL AND id NOT IN ({mine})"
        )
        return _read_ended(connection, now)

    def forget(self) -> None:
        """Forget the numbers of the runs: the next file may have others."""
        self._ids.clear()

    def _find(
        self,
        connection: sqlite3.Connection,
        process: TrackedProcess,
        new: dict[int, tuple[TrackedProcess, int]],
    ) -> int:
        known = self._ids.get(id(process))
        if known is not None:
            return known[1]
        row = connection.execute(_FIND, (process.pid, process.started, SAME_START)).fetchone()
        if row is None:
            values = (process.pid, process.started, process.name[:_MAX_NAME])
            times = (int(process.first * 1000), int(process.last * 1000))
            row = (connection.execute(_BEGIN, (*values, *times)).lastrowid,)
        new[id(process)] = (process, int(row[0]))
        return int(row[0])


def _execute(connection: sqlite3.Connection, statement: str, row: tuple[Any, ...]) -> bool:
    try:
        connection.execute(statement, row)
    except _NOT_STORABLE:
        return False
    return True


def find_ended(file: Path, now: float) -> tuple[EndedProcess, ...]:
    """Processes that ended, from a file that another process writes; none if unreadable."""
    try:
        with closing(open_to_read(file)) as connection:
            return _read_ended(connection, now)
    except (sqlite3.Error, OSError):
        return ()


def _describe(process: TrackedProcess, rows: PendingRows) -> tuple[object, ...]:
    ended = rows.ended.get(id(process), (process, None))[1]
    end = (None, None, None) if ended is None else _describe_end(ended)
    return (
        process.started, process.name[:_MAX_NAME], "+".join(process.devices), process.is_root,
        process.is_connected, int(process.last * 1000), process.peak, process.peak,
        process.footprint_peak, process.footprint_peak, *process.known.values(), *end,
    )  # fmt: skip


def _describe_end(end: EndedProcess) -> tuple[int, str, str | None]:
    """When, how, and the verdict."""
    record = None
    if end.verdict is not None:
        record = json.dumps(build_verdict_json(end.verdict))
        if len(record) > _MAX_VERDICT:
            # The agent's record has the fallbacks too.
            record = json.dumps(build_verdict_json(replace(end.verdict, values={}, fallbacks=None)))
    return int(end.ended * 1000), end.how if end.was_seen else "unseen", record


def _read_ended(connection: sqlite3.Connection, now: float) -> tuple[EndedProcess, ...]:
    since, until = int((now - ENDED_SHOWN_SECONDS) * 1000), int(now * 1000)
    return read_ends(connection, since, until, _MAX_ENDED)


def read_ends(
    connection: sqlite3.Connection, since: int, until: int, most: int, with_children: bool = False
) -> tuple[EndedProcess, ...]:
    """Processes that ended between two times in milliseconds, newest first.

    `with_children`: also those that another one had started and that were connected: ranks.
    """
    query = _ENDED.format(
        verdict="verdict" if "verdict" in read_columns(connection, "runs") else "NULL",
        heads="(head OR connected)" if with_children else "head",
    )
    rows = connection.execute(query, (since, until, most)).fetchall()
    return tuple(
        EndedProcess(
            pid, started, name, ended / 1000, how != "unseen", peak, held,
            "unknown" if how == "unseen" else how, parse_verdict(verdict),
            ran=max(0.0, ended / 1000 - (first / 1000 if started is None else started)),
        )
        for pid, started, name, ended, how, peak, held, verdict, first in rows
    )  # fmt: skip
