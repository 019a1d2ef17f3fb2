"""Reads the history, as immutable values, while another process may be writing it."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mpsbar.core.counters import RECORDED
from mpsbar.core.untrusted import parse_object
from mpsbar.core.verdicts import EndVerdict, parse_verdict_json
from mpsbar.history.database import MACHINE_COLUMNS, read_columns, require_files
from mpsbar.history.period import Period, RecordedEvent, Run, TimeSeries
from mpsbar.system import paths
from mpsbar.system.files import is_usable

_log = logging.getLogger("mpsbar")

_WAIT_SECONDS = 2.0
_MAX_RUNS = 40
_MAX_EVENTS = 300


def open_to_read(file: Path) -> sqlite3.Connection:
    """Opens the file to read it.

    FileNotFoundError: nothing was recorded. sqlite3.Error: it is unreadable. Another OSError:
    others can change it, or it is no file.
    """
    if not is_usable(file):
        raise PermissionError(f"{file} was not used")
    if not file.exists():
        raise FileNotFoundError(file)
    require_files(file)
    address = f"file:{quote(str(file))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=_WAIT_SECONDS)
    try:
        connection.execute("SELECT 1 FROM runs LIMIT 1").fetchall()
    except sqlite3.OperationalError:
        connection.close()
        if not file.exists():
            raise
        # SQLite cannot share a file in a read-only folder: read the main file alone.
        connection = sqlite3.connect(f"{address}&immutable=1", uri=True)
    return connection


def find_problem(file: Path | None = None) -> str | None:
    """Returns why the history can't be read; None if it can, or if nothing was recorded.

    It reads the whole file: for when nothing was found in it.
    """
    try:
        with closing(open_to_read(file or paths.history_file())) as connection:
            connection.execute("SELECT 1 FROM runs LIMIT 1").fetchall()
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except FileNotFoundError:
        return None
    except (sqlite3.Error, OSError) as error:
        return str(error)
    return None if answer == "ok" else str(answer)


def read_start(file: Path | None = None) -> float | None:
    """Returns the time of the oldest reading; None if nothing was recorded, or can be read."""
    try:
        with closing(open_to_read(file or paths.history_file())) as connection:
            rows = connection.execute(
                "SELECT min(time) FROM machine_minutes UNION ALL SELECT min(time) FROM machine"
            ).fetchall()
    except (FileNotFoundError, PermissionError):  # is_usable has logged the latter
        return None
    except (sqlite3.Error, OSError) as error:
        _log.warning("couldn't read the history: %s", error)
        return None
    times = [row[0] for row in rows if row[0] is not None]
    return min(times) / 1000 if times else None


def read_period(since: float, until: float, points: int, file: Path | None = None) -> Period:
    """Everything between two times, with at most `points` in each series, each a maximum."""
    window = (int(since * 1000), int(until * 1000))
    step = max(1, (window[1] - window[0]) // points)
    try:
        with closing(open_to_read(file or paths.history_file())) as connection:
            connection.execute("BEGIN")
            return Period(
                since,
                until,
                _read_machine(connection, window, step),
                _read_runs(connection, window, step),
                _read_events(connection, window),
            )
    except (FileNotFoundError, PermissionError):  # is_usable has logged the latter
        return Period(since, until)
    except (sqlite3.Error, OSError) as error:
        _log.warning("couldn't read the history: %s", error)
        return Period(since, until)


def _read_machine(connection: sqlite3.Connection, window: tuple[int, int], step: int) -> TimeSeries:
    most = ", ".join(f"max({name})" for name in MACHINE_COLUMNS)
    rows = connection.execute(
        f"SELECT max(time), {most} FROM ("  # noqa: S608 - our own names
        " SELECT * FROM machine_minutes WHERE time BETWEEN ?1 AND ?2"
        " UNION ALL SELECT * FROM machine WHERE time BETWEEN ?1 AND ?2"
        ") GROUP BY time / ?3 ORDER BY 1",
        (*window, step),
    ).fetchall()
    return _build_series(rows, MACHINE_COLUMNS)


def _read_runs(
    connection: sqlite3.Connection, window: tuple[int, int], step: int
) -> tuple[Run, ...]:
    columns = ", ".join(_recorded_columns(connection))
    verdict = "verdict" if "verdict" in read_columns(connection, "runs") else "NULL"
    known = connection.execute(
        f"SELECT id, pid, name, device, connected, first, last, ended, how,"  # noqa: S608
        f" {verdict}, peak,"
        f" footprint_peak, {columns} FROM runs"
        " WHERE last >= ? AND first <= ? AND (connected OR last - first >= 30000)"
        " ORDER BY coalesce(peak, 0) DESC, coalesce(footprint_peak, 0) DESC LIMIT ?",
        (*window, _MAX_RUNS),
    ).fetchall()
    series = _read_series(connection, [row[0] for row in known], window, step)
    return tuple(_build_run(row, series.get(row[0], [])) for row in known)


def _read_series(
    connection: sqlite3.Connection, runs: list[int], window: tuple[int, int], step: int
) -> dict[int, list[Any]]:
    wanted = ", ".join(str(run) for run in runs)
    columns = ", ".join(("run", "time", *_recorded_columns(connection)))
    most = ", ".join(f"max({name})" for name in RECORDED)
    rows = connection.execute(
        f"SELECT run, max(time), {most} FROM ("  # noqa: S608 - our own names and numbers
        f" SELECT {columns} FROM minutes WHERE time BETWEEN ?1 AND ?2 AND run IN ({wanted})"
        f" UNION ALL SELECT {columns} FROM samples"
        f" WHERE time BETWEEN ?1 AND ?2 AND run IN ({wanted})"
        ") GROUP BY run, time / ?3 ORDER BY 1, 2",
        (*window, step),
    )
    series: dict[int, list[Any]] = {}
    for run, *row in rows:
        series.setdefault(run, []).append(row)
    return series


def _recorded_columns(connection: sqlite3.Connection) -> list[str]:
    """The columns of RECORDED; NULL for those that a file of an older mpsbar lacks."""
    present = read_columns(connection, "samples")
    return [name if name in present else f"NULL AS {name}" for name in RECORDED]


def _build_series(rows: list[Any], names: tuple[str, ...]) -> TimeSeries:
    if not rows:
        return TimeSeries()
    times, *columns = zip(*rows, strict=True)
    by_name = dict(zip(names, columns, strict=True))
    return TimeSeries(tuple(time / 1000 for time in times), by_name)


def _build_run(row: tuple[Any, ...], series: list[Any]) -> Run:
    _, pid, name, device, connected, first, last, ended, how, verdict, *sizes = row
    peak, footprint_peak, *known = sizes
    return Run(
        pid, name, device or "", bool(connected), first / 1000, last / 1000,
        None if ended is None else ended / 1000, how, peak, footprint_peak,
        dict(zip(RECORDED, known, strict=True)), _build_series(series, RECORDED),
        parse_verdict(verdict),
    )  # fmt: skip


def _read_events(
    connection: sqlite3.Connection, window: tuple[int, int]
) -> tuple[RecordedEvent, ...]:
    rows = connection.execute(
        "SELECT time, kind, code, pid, name, level, size, phase, details FROM events"
        " WHERE time BETWEEN ? AND ? ORDER BY time DESC, id DESC LIMIT ?",
        (*window, _MAX_EVENTS),
    ).fetchall()
    return tuple(
        RecordedEvent(
            time / 1000, kind, code, pid, name or None, level, size, phase, _parse(details)
        )
        for time, kind, code, pid, name, level, size, phase, details in rows
    )


def parse_verdict(text: str | None) -> EndVerdict | None:
    """The verdict of an end; the file may have been changed by anyone."""
    return parse_verdict_json(_parse(text))


def _parse(details: str | None) -> dict[str, Any]:
    return parse_object(details or "{}") or {}
