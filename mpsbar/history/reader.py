"""The history read by whoever wants it, while another process writes it."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mpsbar.core.counters import RECORDED
from mpsbar.history.records import Event, Period, Run, TimeSeries
from mpsbar.system import paths
from mpsbar.system.owned_files import is_usable

_WAIT_SECONDS = 2.0
_MOST_RUNS = 40
_MOST_EVENTS = 300
_MACHINE = ("used", "swap", "gpu", "busy", "total", "budget")


def open_to_read(file: Path) -> sqlite3.Connection:
    """sqlite3.Error: there is none, or it cannot be read. OSError: somebody else can change it."""
    if not is_usable(file):
        raise PermissionError(f"{file} was not used")
    address = f"file:{quote(str(file))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=_WAIT_SECONDS)
    try:
        connection.execute("SELECT 1 FROM runs LIMIT 1").fetchall()
    except sqlite3.OperationalError:
        connection.close()
        if not file.exists():
            raise
        # Where nothing may be written SQLite cannot share it: read what is in the main file.
        connection = sqlite3.connect(f"{address}&immutable=1", uri=True)
    return connection


def read_start(file: Path | None = None) -> float | None:
    """Since when something was recorded; None: nothing was."""
    try:
        with closing(open_to_read(file or paths.history_file())) as connection:
            rows = connection.execute(
                "SELECT min(time) FROM machine_minutes UNION ALL SELECT min(time) FROM machine"
            ).fetchall()
    except (sqlite3.Error, OSError):
        return None
    times = [row[0] for row in rows if row[0] is not None]
    return min(times) / 1000 if times else None


def read_span(since: float, until: float, points: int, file: Path | None = None) -> Period:
    """At most `points` in each course, each the most of its stretch. Empty where nothing is."""
    empty = Period(since, until)
    try:
        with closing(open_to_read(file or paths.history_file())) as connection:
            connection.execute("BEGIN")
            return _read_span(connection, since, until, points)
    except (sqlite3.Error, OSError):
        return empty


def _read_span(connection: sqlite3.Connection, since: float, until: float, points: int) -> Period:
    window = (int(since * 1000), int(until * 1000))
    step = max(1, (window[1] - window[0]) // points)
    return Period(
        since, until, _read_machine(connection, window, step), _read_runs(connection, window, step),
        _read_happenings(connection, window),
    )  # fmt: skip


def _read_machine(connection: sqlite3.Connection, window: tuple[int, int], step: int) -> TimeSeries:
    most = ", ".join(f"max({name})" for name in _MACHINE)
    rows = connection.execute(
        f"SELECT max(time), {most} FROM ("  # noqa: S608 - our own names
        " SELECT * FROM machine_minutes WHERE time BETWEEN ?1 AND ?2"
        " UNION ALL SELECT * FROM machine WHERE time BETWEEN ?1 AND ?2"
        ") GROUP BY time / ?3 ORDER BY 1",
        (*window, step),
    ).fetchall()
    return _build_course(rows, _MACHINE)


def _read_runs(
    connection: sqlite3.Connection, window: tuple[int, int], step: int
) -> tuple[Run, ...]:
    columns = ", ".join(_recorded_columns(connection))
    known = connection.execute(
        f"SELECT id, pid, started, name, device, connected, first, last, ended, how, peak,"  # noqa: S608
        f" footprint_peak, {columns} FROM runs"
        " WHERE last >= ? AND first <= ? AND (connected OR last - first >= 30000)"
        " ORDER BY coalesce(peak, 0) DESC, coalesce(footprint_peak, 0) DESC LIMIT ?",
        (*window, _MOST_RUNS),
    ).fetchall()
    courses = _read_courses(connection, [row[0] for row in known], window, step)
    return tuple(_build_run(row, courses.get(row[0], [])) for row in known)


def _read_courses(
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
    courses: dict[int, list[Any]] = {}
    for run, *row in rows:
        courses.setdefault(run, []).append(row)
    return courses


def _recorded_columns(connection: sqlite3.Connection) -> list[str]:
    """Of a file that an older mpsbar wrote, and nobody has brought up yet, not all are there."""
    there = {row[1] for row in connection.execute("PRAGMA table_info(samples)")}
    return [name if name in there else f"NULL AS {name}" for name in RECORDED]


def _build_course(rows: list[Any], names: tuple[str, ...]) -> TimeSeries:
    if not rows:
        return TimeSeries()
    times, *columns = zip(*rows, strict=True)
    told = dict(zip(names, columns, strict=True))
    return TimeSeries(tuple(time / 1000 for time in times), told)


def _build_run(row: tuple[Any, ...], course: list[Any]) -> Run:
    _, pid, started, name, device, connected, first, last, ended, how, *sizes = row
    peak, footprint_peak, *known = sizes
    return Run(
        pid, started, name, device or "", bool(connected), first / 1000, last / 1000,
        None if ended is None else ended / 1000, how, peak, footprint_peak,
        dict(zip(RECORDED, known, strict=True)), _build_course(course, RECORDED),
    )  # fmt: skip


def _read_happenings(connection: sqlite3.Connection, window: tuple[int, int]) -> tuple[Event, ...]:
    rows = connection.execute(
        "SELECT time, kind, code, pid, name, level, size, phase, details FROM events"
        " WHERE time BETWEEN ? AND ? ORDER BY time DESC, id DESC LIMIT ?",
        (*window, _MOST_EVENTS),
    ).fetchall()
    return tuple(
        Event(time / 1000, kind, code, pid, name or None, level, size, phase, _parse(details))
        for time, kind, code, pid, name, level, size, phase, details in rows
    )


def _parse(details: str | None) -> dict[str, Any]:
    try:
        told = json.loads(details or "{}")
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
