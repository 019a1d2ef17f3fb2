"""The history read by whoever wants it, while another process writes it."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mpsbar.model.past import Course, Happening, Run, Span
from mpsbar.storage import paths

_WAIT_SECONDS = 2.0
_MOST_RUNS = 40
_MOST_EVENTS = 300
_MACHINE = ("used", "swap", "gpu", "busy", "total", "budget")
_RUN = ("allocated", "cached", "held", "footprint")


def open_to_read(file: Path) -> sqlite3.Connection:
    """sqlite3.Error: there is none, or it cannot be read."""
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


def read_span(since: float, until: float, points: int, file: Path | None = None) -> Span:
    """At most `points` in each course, each the most of its stretch. Empty where nothing is."""
    empty = Span(since, until)
    try:
        with closing(open_to_read(file or paths.history_file())) as connection:
            connection.execute("BEGIN")
            return _read_span(connection, since, until, points)
    except (sqlite3.Error, OSError):
        return empty


def _read_span(connection: sqlite3.Connection, since: float, until: float, points: int) -> Span:
    window = (int(since * 1000), int(until * 1000))
    step = max(1, (window[1] - window[0]) // points)
    return Span(
        since, until, _read_machine(connection, window, step), _read_runs(connection, window, step),
        _read_happenings(connection, window),
    )  # fmt: skip


def _read_machine(connection: sqlite3.Connection, window: tuple[int, int], step: int) -> Course:
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
    known = connection.execute(
        "SELECT id, pid, started, name, device, connected, first, last, ended, how, peak,"
        " footprint_peak, held, allocated, cached, footprint FROM runs"
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
    most = ", ".join(f"max({name})" for name in _RUN)
    rows = connection.execute(
        f"SELECT run, max(time), {most} FROM ("  # noqa: S608 - our own names and numbers
        f" SELECT * FROM minutes WHERE time BETWEEN ?1 AND ?2 AND run IN ({wanted})"
        f" UNION ALL SELECT * FROM samples WHERE time BETWEEN ?1 AND ?2 AND run IN ({wanted})"
        ") GROUP BY run, time / ?3 ORDER BY 1, 2",
        (*window, step),
    )
    courses: dict[int, list[Any]] = {}
    for run, *row in rows:
        courses.setdefault(run, []).append(row)
    return courses


def _build_course(rows: list[Any], names: tuple[str, ...]) -> Course:
    if not rows:
        return Course()
    times, *columns = zip(*rows, strict=True)
    told = dict(zip(names, columns, strict=True))
    return Course(tuple(time / 1000 for time in times), told)


def _build_run(row: tuple[Any, ...], course: list[Any]) -> Run:
    _, pid, started, name, device, connected, first, last, ended, how, *sizes = row
    peak, footprint_peak, held, allocated, cached, footprint = sizes
    return Run(
        pid, started, name, device or "", bool(connected), first / 1000, last / 1000,
        None if ended is None else ended / 1000, how, peak, footprint_peak, held, allocated, cached,
        footprint, _build_course(course, _RUN),
    )  # fmt: skip


def _read_happenings(
    connection: sqlite3.Connection, window: tuple[int, int]
) -> tuple[Happening, ...]:
    rows = connection.execute(
        "SELECT time, kind, code, pid, name, level, size, phase, details FROM events"
        " WHERE time BETWEEN ? AND ? ORDER BY time DESC, id DESC LIMIT ?",
        (*window, _MOST_EVENTS),
    ).fetchall()
    return tuple(
        Happening(time / 1000, kind, code, pid, name or None, level, size, phase, _parse(details))
        for time, kind, code, pid, name, level, size, phase, details in rows
    )


def _parse(details: str | None) -> dict[str, Any]:
    try:
        told = json.loads(details or "{}")
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
