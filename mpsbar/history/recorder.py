"""Records the history at each tick; a failure is reported once and tried again later.

Rows wait in memory: a transaction for each tick would cost more than the tick.
"""

import sqlite3
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from mpsbar.core.errors import reason_of
from mpsbar.core.events import EndedProcess
from mpsbar.core.findings import Reason
from mpsbar.core.process_tracker import EndedPairs, TrackedProcess
from mpsbar.core.snapshot import Snapshot
from mpsbar.history import retention
from mpsbar.history.database import (
    NewerFormatError,
    is_busy,
    is_damage,
    is_full,
    move_aside,
    open_database,
    read_size,
)
from mpsbar.history.writer import PendingRows, RunWriter, find_ended
from mpsbar.language import _
from mpsbar.system import paths, single_instance
from mpsbar.system.uptime import read_uptime

CAP = 50_000_000
FLUSH_SECONDS = 10.0
_TIDY_SECONDS = 300.0
_RETRY_SECONDS = 60.0
# The same failure, such as a full disk, is reported once a day.
_REPORT_SECONDS = 86400.0
# A clock that was changed may be wrong: nothing is dropped by age until it has run for so long.
_TRUST_SECONDS = 3600.0
_JUMP_SECONDS = 60.0

OnProblem = Callable[[Reason], None]


class Recorder:
    """Writes the history. Call `record` at each tick and `close` at the end, on one thread. Of
    several processes one records."""

    def __init__(
        self,
        on_problem: OnProblem,
        file: Path | None = None,
        cap: int = CAP,
        clock: Callable[[], float] = read_uptime,
    ) -> None:
        self._on_problem, self._cap, self._clock = on_problem, cap, clock
        self._file = file or paths.history_file()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._claim: single_instance.Claim | None = None
        self._reported: dict[str, float] = {}  # until when a failure is not reported again
        self._has_read = False  # what another process recorded
        self._has_old_runs = False  # of an earlier recorder, perhaps; not yet marked as ended
        self._last_event = 0  # the number of the last event that was added
        self._rows = PendingRows()
        self._runs = RunWriter()
        self._offset: float | None = None  # of the wall clock from ours
        now = clock()
        self._trusted = now + _TRUST_SECONDS
        self._due, self._tidy_due = now + FLUSH_SECONDS, now + _TIDY_SECONDS

    def record(
        self,
        snapshot: Snapshot,
        present: Collection[TrackedProcess],
        ended: EndedPairs,
        corrected: EndedPairs | None = None,
    ) -> tuple[EndedProcess, ...]:
        """Return, once, the processes that ended while nobody recorded."""
        now = self._clock()
        self._follow_clock(snapshot.time, now)
        rows = self._rows
        rows.add(snapshot, present, ended)
        for _process, end in corrected or ():
            rows.correct(end)
        if events := snapshot.events_after(self._last_event):
            self._last_event = events[-1].number
            rows.add_events(events)
        if now < self._due and not (rows.is_urgent and self._connection is not None):
            return ()
        if self._connection is None or self._has_old_runs:
            rows.add_all()  # a run that has no row yet counts as ended
        return self._try_to_write(snapshot, now)

    def correct(self, end: EndedProcess) -> None:
        """Replaces what was recorded of an end, once more is known of it."""
        self._rows.correct(end)

    def close(self) -> None:
        """Write what waits, and let the next recorder begin, also where that fails.

        Raises sqlite3.Error, OSError or NewerFormatError if it could not be written.
        """
        try:
            if not self._rows.is_empty and self._is_recorder():
                self._connect()
                assert self._connection is not None
                self._write_rows(self._connection)
        finally:
            self._disconnect()
            if self._claim is not None:
                self._claim.close()
                self._claim = None

    def _follow_clock(self, wall: float, now: float) -> None:
        offset = wall - now
        if self._offset is not None and abs(offset - self._offset) > _JUMP_SECONDS:
            self._trusted = now + _TRUST_SECONDS
        self._offset = offset

    def _try_to_write(self, snapshot: Snapshot, now: float) -> tuple[EndedProcess, ...]:
        self._due = now + FLUSH_SECONDS
        if not self._is_recorder():
            self._rows.clear()  # another process records it
            return self._read_ended(snapshot.time)
        try:
            return self._write(snapshot, now)
        except NewerFormatError as error:
            self._fail("history_newer", error, now)
        except (sqlite3.Error, OSError) as error:
            if is_damage(error):
                self._replace_damaged()
            elif is_busy(error):
                self._disconnect()  # tried again soon; the rows still wait
            else:
                self._fail("history_not_written", error, now)
        return ()

    def _is_recorder(self) -> bool:
        if self._claim is None:
            self._claim = single_instance.claim("recorder")
        return self._claim is not None

    def _read_ended(self, wall: float) -> tuple[EndedProcess, ...]:
        if self._has_read:
            return ()
        self._has_read = True
        return find_ended(self._file, wall)

    def _write(self, snapshot: Snapshot, now: float) -> tuple[EndedProcess, ...]:
        is_new = self._connect()
        self._has_old_runs |= is_new
        assert self._connection is not None
        if read_size(self._file) > self._cap:
            # A reader that does not move on keeps SQLite from emptying its write-ahead log.
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            retention.enforce_size_cap(self._connection, self._cap)
            if read_size(self._file) > self._cap:
                raise OSError(
                    _("it has reached its maximum size, and another program keeps it open")
                )
        if left_out := self._write_rows(self._connection):
            self._report("history_rows_left_out", {"count": left_out}, now)
        if now >= self._tidy_due or is_new:
            self._tidy(snapshot.time, now)
        # Without a list of the processes it is not known which of them still run.
        if self._has_old_runs and snapshot.processes is not None:
            self._has_old_runs = False
            return self._runs.end_unseen(self._connection, snapshot.time)
        return ()

    def _write_rows(self, connection: sqlite3.Connection) -> int:
        try:
            return self._runs.write(connection, self._rows)
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise
            retention.enforce_size_cap(connection, self._cap)
            # If our own limit was reached, there is room now.
            return self._runs.write(connection, self._rows)

    def _tidy(self, wall: float, now: float) -> None:
        assert self._connection is not None
        self._tidy_due = now + _TIDY_SECONDS
        if now >= self._trusted:
            retention.thin(self._connection, int(wall * 1000))
            retention.drop(self._connection, int(wall * 1000))
        retention.enforce_size_cap(self._connection, self._cap)

    def _connect(self) -> bool:
        """Open the file if needed, also after somebody removed it; return whether it was opened."""
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

    def _replace_damaged(self) -> None:
        self._disconnect()
        moved = move_aside(self._file)
        self._on_problem(Reason("history_damaged", "warning", {"file": str(moved)}))
        self._due = 0.0  # at the next tick

    def _fail(self, code: str, error: Exception, now: float) -> None:
        self._disconnect()
        self._due = now + _RETRY_SECONDS
        reason = reason_of(error)
        self._report(code, {"error": reason}, now)

    def _report(self, code: str, values: dict[str, str | int], now: float) -> None:
        if now >= self._reported.get(code, 0.0):
            self._reported[code] = now + _REPORT_SECONDS
            self._on_problem(Reason(code, "warning", {"file": str(self._file), **values}))
