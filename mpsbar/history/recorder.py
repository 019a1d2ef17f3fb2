"""Writes the history, a little at each tick; whatever fails is said once and tried again later.

What is to be written waits in memory: a transaction for each tick would cost more than the tick.
"""

import sqlite3
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from mpsbar.core.events import EndedProcess
from mpsbar.core.findings import Reason
from mpsbar.core.process_tracker import TrackedProcess
from mpsbar.core.snapshot import Snapshot
from mpsbar.history import retention
from mpsbar.history.batch import Batch
from mpsbar.history.database import (
    Newer,
    is_busy,
    is_damage,
    is_full,
    move_aside,
    open_database,
    read_size,
)
from mpsbar.history.runs import Runs, find_ended
from mpsbar.system import paths, single_instance

CAP = 50_000_000
FLUSH_SECONDS = 10.0
_TIDY_SECONDS = 300.0
_RETRY_SECONDS = 60.0
# A disk that is full now and then is not worth a word each time.
_SAID_SECONDS = 86400.0
# A clock that was set anew may be wrong: nothing is dropped by age until it has run on for so long.
_TRUST_SECONDS = 3600.0
_JUMP_SECONDS = 60.0

Say = Callable[[Reason], None]


def _read_clock() -> float:
    """Runs on while the computer sleeps, and is never set."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Recorder:
    """`record` at each tick and `close` at the end, on one thread. One process records."""

    def __init__(
        self,
        say: Say,
        file: Path | None = None,
        cap: int = CAP,
        clock: Callable[[], float] = _read_clock,
    ) -> None:
        self._say, self._cap, self._clock = say, cap, clock
        self._file = file or paths.history_file()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._claim: single_instance.Claim | None = None
        self._said: dict[str, float] = {}  # until when it is not said again
        self._has_read = False  # what another one recorded
        self._last_event = 0  # the number of the last that was taken
        self._batch = Batch()
        self._runs = Runs()
        self._offset: float | None = None  # of the wall clock from ours
        now = clock()
        self._trusted = now + _TRUST_SECONDS
        self._due, self._tidy_due = now + FLUSH_SECONDS, now + _TIDY_SECONDS

    def record(
        self,
        snapshot: Snapshot,
        present: Collection[TrackedProcess],
        ended: list[tuple[TrackedProcess, EndedProcess]],
    ) -> tuple[EndedProcess, ...]:
        """Gives those back, once, that were recorded as running and have ended unseen."""
        now = self._clock()
        self._follow_clock(snapshot.time, now)
        batch = self._batch
        batch.add(snapshot, present, ended)
        if events := snapshot.events_after(self._last_event):
            self._last_event = events[-1].number
            batch.add_events(events)
        if now < self._due and not (batch.is_pressing and self._is_well):
            return ()
        if self._connection is None:
            batch.see_all()  # who is not seen at the beginning counts as ended
        return self._try_to_write(snapshot, now)

    def close(self) -> None:
        """What waits is written; the next recorder can begin."""
        with suppress(sqlite3.Error, OSError, Newer):
            if not self._batch.is_empty and self._is_the_one():
                self._connect()
                assert self._connection is not None
                self._runs.write(self._connection, self._batch)
        self._disconnect()
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    @property
    def _is_well(self) -> bool:
        return self._connection is not None

    def _follow_clock(self, wall: float, now: float) -> None:
        offset = wall - now
        if self._offset is not None and abs(offset - self._offset) > _JUMP_SECONDS:
            self._trusted = now + _TRUST_SECONDS
        self._offset = offset

    def _try_to_write(self, snapshot: Snapshot, now: float) -> tuple[EndedProcess, ...]:
        self._due = now + FLUSH_SECONDS
        if not self._is_the_one():
            self._batch.clear()  # the other one records it
            return self._read_of_the_other(snapshot.time)
        try:
            return self._write(snapshot, now)
        except Newer as error:
            self._fail("history_newer", error, now)
        except (sqlite3.Error, OSError) as error:
            if is_damage(error):
                self._start_anew()
            elif is_busy(error):
                self._disconnect()  # tried again soon; what waits is kept
            else:
                self._fail("history_not_written", error, now)
        return ()

    def _is_the_one(self) -> bool:
        if self._claim is None:
            self._claim = single_instance.claim("recorder")
        return self._claim is not None

    def _read_of_the_other(self, wall: float) -> tuple[EndedProcess, ...]:
        if self._has_read:
            return ()
        self._has_read = True
        return find_ended(self._file, wall)

    def _write(self, snapshot: Snapshot, now: float) -> tuple[EndedProcess, ...]:
        begins = self._connect()
        assert self._connection is not None
        if read_size(self._file) > self._cap:
            # A reader that stands still keeps SQLite from taking what waits into the main file.
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            retention.hold_cap(self._connection, self._cap)
            if read_size(self._file) > self._cap:
                raise OSError("it has reached its maximum size, and another program keeps it open")
        self._write_batch(self._connection)
        if now >= self._tidy_due or begins:
            self._tidy(snapshot.time, now)
        if begins and snapshot.processes is not None:
            return self._runs.end_unseen(self._connection, snapshot.time)
        return ()

    def _write_batch(self, connection: sqlite3.Connection) -> None:
        try:
            self._runs.write(connection, self._batch)
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise
            retention.hold_cap(connection, self._cap)
            self._runs.write(connection, self._batch)  # if it was our own limit, there is room now

    def _tidy(self, wall: float, now: float) -> None:
        assert self._connection is not None
        self._tidy_due = now + _TIDY_SECONDS
        if now >= self._trusted:
            retention.thin(self._connection, int(wall * 1000))
            retention.drop(self._connection, int(wall * 1000))
        retention.hold_cap(self._connection, self._cap)

    def _connect(self) -> bool:
        """True: opened anew, also when someone removed the file under us."""
        if self._connection is not None:
            with suppress(FileNotFoundError):
                if self._file.stat().st_ino == self._inode:
                    return False
            self._disconnect()
        self._connection = open_database(self._file, self._cap)
        self._inode = self._file.stat().st_ino
        return True

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        self._runs.forget()
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _start_anew(self) -> None:
        self._disconnect()
        kept = move_aside(self._file)
        self._say(Reason("history_damaged", "warning", {"file": str(kept)}))
        self._due = 0.0  # at the next tick

    def _fail(self, code: str, error: Exception, now: float) -> None:
        self._disconnect()
        self._due = now + _RETRY_SECONDS
        if now >= self._said.get(code, 0.0):
            self._said[code] = now + _SAID_SECONDS
            self._say(Reason(code, "warning", {"file": str(self._file), "error": str(error)}))
