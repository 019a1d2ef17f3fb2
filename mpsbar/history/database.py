"""Opens the file of the history: creates it, migrates it, or moves a damaged one aside."""

import os
import re
import sqlite3
import stat
import time
from contextlib import closing, suppress
from pathlib import Path

from mpsbar.core.counters import COUNTERS
from mpsbar.language import _
from mpsbar.system.files import NotAFileError, make_folder
from mpsbar.system.ownership import require_safe

# Each step brings a file up by one version. Steps are never changed, only added. The column of a
# counter that is recorded since version 2 or later is no text here: see build_steps.
STEPS: tuple[str, ...] = (
    """
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, started REAL, name TEXT NOT NULL, device TEXT,
        head INTEGER, connected INTEGER, first INTEGER NOT NULL, last INTEGER NOT NULL,
        ended INTEGER, how TEXT, peak INTEGER, footprint_peak INTEGER,
        allocated INTEGER, cached INTEGER, held INTEGER, footprint INTEGER);
    CREATE TABLE samples (
        time INTEGER, run INTEGER, allocated INTEGER, cached INTEGER, held INTEGER,
        footprint INTEGER, PRIMARY KEY (time, run)) WITHOUT ROWID;
    CREATE TABLE minutes (
        time INTEGER, run INTEGER, allocated INTEGER, cached INTEGER, held INTEGER,
        footprint INTEGER, PRIMARY KEY (time, run)) WITHOUT ROWID;
    CREATE TABLE machine (
        time INTEGER PRIMARY KEY, used INTEGER, swap INTEGER, gpu INTEGER, busy INTEGER,
        total INTEGER, budget INTEGER);
    CREATE TABLE machine_minutes (
        time INTEGER PRIMARY KEY, used INTEGER, swap INTEGER, gpu INTEGER, busy INTEGER,
        total INTEGER, budget INTEGER);
    CREATE TABLE events (
        id INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind TEXT NOT NULL, code TEXT NOT NULL,
        level TEXT, pid INTEGER, name TEXT, size INTEGER, phase TEXT, details TEXT);
    """,
    "ALTER TABLE runs ADD COLUMN verdict TEXT",
    """
    ALTER TABLE runs ADD COLUMN speed INTEGER;
    ALTER TABLE samples ADD COLUMN speed INTEGER;
    ALTER TABLE minutes ADD COLUMN speed INTEGER
    """,
)
# Values of the machine at one time, in the tables `machine` and `machine_minutes`.
MACHINE_COLUMNS = ("used", "swap", "gpu", "busy", "total", "budget")
# A tick must not wait for another process that uses the file.
_BUSY_SECONDS = 0.05
_PAGE = 4096
# The size of the write-ahead log, at most; the cap leaves room for it.
WAL_BYTES = 1 << 20
_MAX_DAMAGED = 1
# SQLite has only its message for that.
_WRONG_TABLES = re.compile(r"no such (table|column)|has no column|already exists|views")


def build_steps() -> list[str]:
    """Returns STEPS; the step of a version also has the columns of the counters that it added."""
    later = [counter for counter in COUNTERS if counter.recorded and counter.recorded > 1]
    newest = max([len(STEPS), *(counter.recorded or 0 for counter in later)])
    steps = [*STEPS, *[""] * (newest - len(STEPS))]
    for counter in later:
        columns = [
            f"ALTER TABLE {table} ADD COLUMN {counter.name} INTEGER"
            for table in ("runs", "samples", "minutes")
        ]
        at = (counter.recorded or 0) - 1
        steps[at] = ";".join(filter(None, [steps[at], *columns]))
    return steps


class NewerFormatError(Exception):
    """The file was written by a newer mpsbar, and must not be changed."""


def open_database(file: Path, cap: int) -> sqlite3.Connection:
    """Open the file for writing. sqlite3.Error or OSError: it cannot be written."""
    make_folder(file.parent)
    require_safe(file)
    require_files(file)
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(
        file, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _prepare(connection, cap)
    except BaseException:
        connection.close()
        raise
    return connection


def require_files(file: Path) -> None:
    """Raise NotAFileError if SQLite would wait for a pipe in the place of one of its files."""
    for ending in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(file.with_name(file.name + ending).stat().st_mode):
                raise NotAFileError(_("it is not a file"))


def find_room(cap: int) -> int:
    """Returns the bytes for the main file: the cap minus room for the write-ahead log."""
    return max(256 * _PAGE, cap - 3 * WAL_BYTES)


def is_damage(error: Exception) -> bool:
    """Returns whether the file is no database, or not a complete one; a full disk is no damage."""
    if type(error) is sqlite3.DatabaseError:
        return True
    return (
        isinstance(error, sqlite3.OperationalError) and _WRONG_TABLES.search(str(error)) is not None
    )


def is_busy(error: Exception) -> bool:
    """Returns whether another process writes; SQLite has only its message for that."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def is_full(error: Exception) -> bool:
    """Returns whether the disk is full, or the file has reached its cap."""
    return isinstance(error, sqlite3.OperationalError) and "full" in str(error)


def move_aside(file: Path) -> Path:
    """Rename a damaged file; earlier damaged ones are removed, so that they do not add up."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    moved = file.with_name(f"{file.stem}.damaged-{stamp}{file.suffix}")
    older = sorted(file.parent.glob(f"{file.stem}.damaged-*"))
    for old in older[: max(0, len(older) - _MAX_DAMAGED + 1)]:
        with suppress(OSError):
            old.unlink()
    for ending in ("-wal", "-shm"):
        with suppress(OSError):
            file.with_name(file.name + ending).replace(moved.with_name(moved.name + ending))
    file.replace(moved)
    return moved


def read_size(file: Path) -> int:
    """Bytes on disk, with the write-ahead log."""
    total = 0
    for ending in ("", "-wal"):
        with suppress(FileNotFoundError):
            total += file.with_name(file.name + ending).stat().st_size
    return total


def _prepare(connection: sqlite3.Connection, cap: int) -> None:
    _check(connection)
    if connection.execute("PRAGMA page_count").fetchone()[0] == 0:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # has no effect later
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_BYTES // _PAGE // 4}")
    connection.execute(f"PRAGMA max_page_count = {find_room(cap) // _PAGE}")
    _migrate(connection)


def _check(connection: sqlite3.Connection) -> None:
    """Check version and integrity, before anything in the file is changed."""
    version, tables = read_version(connection), _read_tables(connection)
    if tables and not {"runs", "samples", "machine", "events"} <= set(tables):
        raise sqlite3.DatabaseError("its tables are not mpsbar's")
    if version > len(build_steps()):
        raise NewerFormatError(_("its format {n} is from a newer mpsbar").format(n=version))
    if (tables and version <= 0) or not _are_ours(tables, version):
        raise sqlite3.DatabaseError("its tables are not mpsbar's")
    with closing(connection.execute("PRAGMA quick_check(1)")) as cursor:
        answer = cursor.fetchone()
    if answer is None or answer[0] != "ok":
        raise sqlite3.DatabaseError("the file is damaged")


def _migrate(connection: sqlite3.Connection) -> None:
    """Apply all missing steps, or none of them."""
    steps, version = build_steps(), read_version(connection)
    if version == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[version:]:
            for statement in step.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _are_ours(tables: dict[str, set[str]], version: int) -> bool:
    """Returns whether they have every column that a file of this version has."""
    with closing(sqlite3.connect(":memory:")) as model:
        model.executescript(";".join(build_steps()[:version]))
        wanted = _read_tables(model)
    return all(columns <= tables.get(name, set()) for name, columns in wanted.items())


def _read_tables(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """The names of the columns of each table."""
    rows = connection.execute(
        "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"
        " WHERE m.type IN ('table', 'view')"
    ).fetchall()
    tables: dict[str, set[str]] = {}
    for table, column in rows:
        tables.setdefault(table, set()).add(column)
    return tables


def read_columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def read_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
