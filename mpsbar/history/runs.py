"""The rows of the history: each process is a run, found again after a restart of the recorder."""

import sqlite3
from contextlib import closing
from pathlib import Path

from mpsbar.core.counters import RECORDED
from mpsbar.core.events import EndedProcess
from mpsbar.core.process_tracker import TOLD_SECONDS, TrackedProcess
from mpsbar.history.batch import Batch
from mpsbar.history.reader import open_to_read

# Of one start, told twice: the boot time it is reckoned from may move a little.
_SAME_START = 2.0
_MOST_NAME = 300
_MOST_ENDED = 20
_FIND = (
    "SELECT id FROM runs WHERE pid = ? AND (abs(started - ?) < ? OR (started IS NULL AND"
    " ended IS NULL)) ORDER BY id DESC LIMIT 1"
)
_BEGIN = "INSERT INTO runs (pid, started, name, first, last) VALUES (?, ?, ?, ?, ?)"
_UPDATE = f"""
    UPDATE runs SET started = ?, name = ?, device = ?, head = ?, connected = ?, last = max(last, ?),
        peak = coalesce(max(peak, ?), peak, ?),
        footprint_peak = coalesce(max(footprint_peak, ?), footprint_peak, ?),
        {", ".join(f"{name} = ?" for name in RECORDED)}, ended = ?, how = ?
    WHERE id = ?"""  # noqa: S608 - our own names
_SAMPLE = (
    f"INSERT OR IGNORE INTO samples (time, run, {', '.join(RECORDED)})"  # noqa: S608
    f" VALUES (?, ?{', ?' * len(RECORDED)})"
)
_ENDED = (
    "SELECT pid, started, name, ended, how, coalesce(peak, footprint_peak), held FROM runs"
    " WHERE ended BETWEEN ? AND ? AND head AND (connected OR last - first >= 30000)"
    " ORDER BY ended DESC LIMIT ?"
)


class Runs:
    def __init__(self) -> None:
        # By identity of the process, which is kept here so that its id() stays its own.
        self._ids: dict[int, tuple[TrackedProcess, int]] = {}

    def write(self, connection: sqlite3.Connection, batch: Batch) -> None:
        """All that waits, or nothing of it; what is there already is never replaced."""
        new: dict[int, tuple[TrackedProcess, int]] = {}
        connection.execute("BEGIN IMMEDIATE")
        try:
            for process in batch.seen.values():
                number = self._find(connection, process, new)
                connection.execute(_UPDATE, (*_describe(process, batch), number))
            known = self._ids | new
            connection.executemany(
                _SAMPLE,
                [(time, known[id(process)][1], *values) for time, process, values in batch.samples],
            )
            connection.executemany(
                "INSERT OR IGNORE INTO machine VALUES (?, ?, ?, ?, ?, ?, ?)", batch.machine
            )
            connection.executemany(
                "INSERT INTO events (time, kind, code, level, pid, name, size, phase, details)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                batch.events,
            )
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._ids |= new
        for key in batch.ended:
            self._ids.pop(key, None)
        batch.clear()

    def end_unseen(self, connection: sqlite3.Connection, now: float) -> tuple[EndedProcess, ...]:
        """Those that an earlier recorder saw and that are no more; gives all of the last day."""
        mine = ", ".join(str(number) for _, number in self._ids.values())
        connection.execute(
            "UPDATE runs SET ended = last, how = 'unseen'"  # noqa: S608 - numbers
            f" WHERE ended IS NULL AND id NOT IN ({mine})"
        )
        return _read_ended(connection, now)

    def forget(self) -> None:
        """The next file may have other numbers."""
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
        row = connection.execute(_FIND, (process.pid, process.started, _SAME_START)).fetchone()
        if row is None:
            values = (process.pid, process.started, process.name[:_MOST_NAME])
            times = (int(process.first * 1000), int(process.last * 1000))
            row = (connection.execute(_BEGIN, (*values, *times)).lastrowid,)
        new[id(process)] = (process, int(row[0]))
        return int(row[0])


def find_ended(file: Path, now: float) -> tuple[EndedProcess, ...]:
    """Of a file that another process writes; none where it cannot be read."""
    try:
        with closing(open_to_read(file)) as connection:
            return _read_ended(connection, now)
    except (sqlite3.Error, OSError):
        return ()


def _describe(process: TrackedProcess, batch: Batch) -> tuple[object, ...]:
    ended = batch.ended.get(id(process), (process, None))[1]
    end = (None, None) if ended is None else (int(ended.ended * 1000), _say_how(ended))
    return (
        process.started, process.name[:_MOST_NAME], "+".join(process.devices), process.is_head,
        process.is_connected, int(process.last * 1000), process.peak, process.peak,
        process.footprint_peak, process.footprint_peak, *process.known.values(), *end,
    )  # fmt: skip


def _say_how(ended: EndedProcess) -> str:
    return ended.how if ended.was_seen else "unseen"


def _read_ended(connection: sqlite3.Connection, now: float) -> tuple[EndedProcess, ...]:
    since, until = int((now - TOLD_SECONDS) * 1000), int(now * 1000)
    rows = connection.execute(_ENDED, (since, until, _MOST_ENDED)).fetchall()
    return tuple(
        EndedProcess(pid, started, name, ended / 1000, how != "unseen", peak, held,
             "unknown" if how == "unseen" else how)
        for pid, started, name, ended, how, peak, held in rows
    )  # fmt: skip
