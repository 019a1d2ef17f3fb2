"""The rows of the history: each life is a run, found again after a restart of the recorder."""

import sqlite3
from contextlib import closing
from pathlib import Path

from mpsbar.model.lives import TOLD_SECONDS, Life
from mpsbar.model.snapshot import Gone
from mpsbar.storage.batch import Batch
from mpsbar.storage.reading import open_to_read

# Of one start, told twice: the boot time it is reckoned from may move a little.
_SAME_START = 2.0
_MOST_NAME = 300
_MOST_GONE = 20
_FIND = (
    "SELECT id FROM runs WHERE pid = ? AND (abs(started - ?) < ? OR (started IS NULL AND"
    " ended IS NULL)) ORDER BY id DESC LIMIT 1"
)
_BEGIN = "INSERT INTO runs (pid, started, name, first, last) VALUES (?, ?, ?, ?, ?)"
_UPDATE = """
    UPDATE runs SET started = ?, name = ?, device = ?, head = ?, connected = ?, last = max(last, ?),
        peak = coalesce(max(peak, ?), peak, ?),
        footprint_peak = coalesce(max(footprint_peak, ?), footprint_peak, ?),
        allocated = ?, cached = ?, held = ?, footprint = ?, ended = ?, how = ?
    WHERE id = ?"""
_GONE = (
    "SELECT pid, started, name, ended, how, coalesce(peak, footprint_peak), held FROM runs"
    " WHERE ended BETWEEN ? AND ? AND head AND (connected OR last - first >= 30000)"
    " ORDER BY ended DESC LIMIT ?"
)


class Runs:
    def __init__(self) -> None:
        self._ids: dict[int, tuple[Life, int]] = {}  # by identity of the life, which is kept

    def write(self, connection: sqlite3.Connection, batch: Batch) -> None:
        """All that waits, or nothing of it; what is there already is never replaced."""
        new: dict[int, tuple[Life, int]] = {}
        connection.execute("BEGIN IMMEDIATE")
        try:
            for life in batch.seen.values():
                number = self._find(connection, life, new)
                connection.execute(_UPDATE, (*_describe(life, batch), number))
            known = self._ids | new
            connection.executemany(
                "INSERT OR IGNORE INTO samples VALUES (?, ?, ?, ?, ?, ?)",
                [(time, known[id(life)][1], *values) for time, life, values in batch.samples],
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

    def end_unseen(self, connection: sqlite3.Connection, now: float) -> tuple[Gone, ...]:
        """Those that an earlier recorder saw and that are no more; gives all of the last day."""
        mine = ", ".join(str(number) for _, number in self._ids.values())
        connection.execute(
            "UPDATE runs SET ended = last, how = 'unseen'"  # noqa: S608 - numbers
            f" WHERE ended IS NULL AND id NOT IN ({mine})"
        )
        return _read_gone(connection, now)

    def forget(self) -> None:
        """The next file may have other numbers."""
        self._ids.clear()

    def _find(
        self, connection: sqlite3.Connection, life: Life, new: dict[int, tuple[Life, int]]
    ) -> int:
        known = self._ids.get(id(life))
        if known is not None:
            return known[1]
        row = connection.execute(_FIND, (life.pid, life.started, _SAME_START)).fetchone()
        if row is None:
            values = (life.pid, life.started, life.name[:_MOST_NAME])
            times = (int(life.first * 1000), int(life.last * 1000))
            row = (connection.execute(_BEGIN, (*values, *times)).lastrowid,)
        new[id(life)] = (life, int(row[0]))
        return int(row[0])


def find_gone(file: Path, now: float) -> tuple[Gone, ...]:
    """Of a file that another process writes; none where it cannot be read."""
    try:
        with closing(open_to_read(file)) as connection:
            return _read_gone(connection, now)
    except (sqlite3.Error, OSError):
        return ()


def _describe(life: Life, batch: Batch) -> tuple[object, ...]:
    gone = batch.ended.get(id(life), (life, None))[1]
    end = (None, None) if gone is None else (int(gone.ended * 1000), _say_how(gone))
    return (
        life.started, life.name[:_MOST_NAME], "+".join(life.devices), life.is_head,
        life.is_connected, int(life.last * 1000), life.peak, life.peak, life.footprint_peak,
        life.footprint_peak, *life.known, *end,
    )  # fmt: skip


def _say_how(gone: Gone) -> str:
    return gone.how if gone.was_seen else "unseen"


def _read_gone(connection: sqlite3.Connection, now: float) -> tuple[Gone, ...]:
    since, until = int((now - TOLD_SECONDS) * 1000), int(now * 1000)
    rows = connection.execute(_GONE, (since, until, _MOST_GONE)).fetchall()
    return tuple(
        Gone(pid, started, name, ended / 1000, how != "unseen", peak, held,
             "unknown" if how == "unseen" else how)
        for pid, started, name, ended, how, peak, held in rows
    )  # fmt: skip
