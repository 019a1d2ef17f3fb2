"""How long history is kept, in days and rows per minute, and how large its file may become."""

import sqlite3

from mpsbar.core.counters import RECORDED
from mpsbar.history.database import MACHINE_COLUMNS, find_room

_HOUR = 3600_000  # milliseconds, as all times in the file
KEEP_FULL = _HOUR  # every reading; after that one row a minute
KEEP_DAYS = 7
KEEP = KEEP_DAYS * 24 * _HOUR
_MINUTE = 60_000
_MAX_EVENTS = 10_000
_MAX_RUNS = 5_000
# Rows dropped at once: a transaction must fit into the write-ahead log.
_CHUNK = 4_000
_PAGES = 200
_FULL, _ROOMY = 0.9, 0.75  # of the size: where dropping starts and stops
_VALUES = {
    "samples": ("minutes", RECORDED),
    "machine": ("machine_minutes", MACHINE_COLUMNS),
}


def thin(connection: sqlite3.Connection, now: int) -> None:
    """Replace readings older than KEEP_FULL by one row a minute, of the largest values in it."""
    cutoff = (now - KEEP_FULL) // _MINUTE * _MINUTE
    for table, (coarse, values) in _VALUES.items():
        keys = ("run",) if table == "samples" else ()
        columns = ", ".join((*keys, *values))
        most = ", ".join((*keys, *(f"max({value})" for value in values)))
        larger = ", ".join(
            f"{v} = coalesce(max({coarse}.{v}, excluded.{v}), {coarse}.{v}, excluded.{v})"
            for v in values
        )
        group = ", ".join(("1", *keys))
        conflict = ", ".join(("time", *keys))
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            f"INSERT INTO {coarse} (time, {columns})"  # noqa: S608 - our own names
            f" SELECT time / {_MINUTE} * {_MINUTE}, {most} FROM {table} WHERE time < ?"
            f" GROUP BY {group} ON CONFLICT ({conflict}) DO UPDATE SET {larger}",
            (cutoff,),
        )
        connection.execute(f"DELETE FROM {table} WHERE time < ?", (cutoff,))  # noqa: S608
        connection.execute("COMMIT")


def drop(connection: sqlite3.Connection, now: int) -> None:
    """Drop what is older than KEEP, or lies in the future because a clock was wrong."""
    connection.execute("BEGIN IMMEDIATE")
    for table in ("minutes", "machine_minutes", "samples", "machine", "events"):
        connection.execute(
            f"DELETE FROM {table} WHERE time < ? OR time > ?",  # noqa: S608
            (now - KEEP, now + KEEP),
        )
    connection.execute("DELETE FROM runs WHERE ended < ? OR last > ?", (now - KEEP, now + KEEP))
    _keep_newest(connection, "events", _MAX_EVENTS)
    _keep_newest(connection, "runs", _MAX_RUNS)
    connection.execute("COMMIT")


def enforce_size_cap(connection: sqlite3.Connection, cap: int) -> None:
    """Drop the oldest rows until there is room, and shrink the file."""
    room = find_room(cap)
    if _read_used(connection) > room * _FULL:
        while _read_used(connection) > room * _ROOMY and _drop_oldest(connection):
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    for _ in range(_read(connection, "freelist_count") // _PAGES + 1):
        # executescript, because execute() would run the first step only, which frees one page.
        connection.executescript(f"PRAGMA incremental_vacuum({_PAGES})")
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _keep_newest(connection: sqlite3.Connection, table: str, most: int) -> None:
    connection.execute(
        f"DELETE FROM {table} WHERE id <= (SELECT max(id) - ? FROM {table})",  # noqa: S608
        (most,),
    )


def _read_used(connection: sqlite3.Connection) -> int:
    pages = _read(connection, "page_count") - _read(connection, "freelist_count")
    return pages * _read(connection, "page_size")


def _read(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _drop_oldest(connection: sqlite3.Connection) -> bool:
    for table in ("minutes", "samples", "events", "machine_minutes", "machine"):
        row = connection.execute(
            f"SELECT max(time) FROM (SELECT time FROM {table} ORDER BY time LIMIT ?)",  # noqa: S608
            (_CHUNK,),
        ).fetchone()
        if row[0] is not None:
            connection.execute(f"DELETE FROM {table} WHERE time <= ?", row)  # noqa: S608
            return True
    return False
