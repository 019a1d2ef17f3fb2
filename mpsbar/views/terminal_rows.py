"""The rows of the menu with the numbers that only a wide table has room for. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from mpsbar.model.machine import Process
from mpsbar.model.snapshot import Snapshot, Worker
from mpsbar.views import wording
from mpsbar.views.frame import Style
from mpsbar.views.row import Row

_INDENT = "└ "


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the table."""

    row: Row
    pid: int | None
    cells: dict[str, str]
    values: dict[str, float | None]  # to sort by
    is_child: bool
    style: Style = ""

    @property
    def key(self) -> str:
        return self.row.key

    def matches(self, text: str) -> bool:
        """What tells it apart: not its numbers."""
        words = [self.cells.get(name, "") for name in ("PID", "NAME", "DEVICE", "NOTE")]
        return text.lower() in " ".join(words).lower()


def build_entries(rows: Iterable[Row], snapshot: Snapshot) -> tuple[Entry, ...]:
    workers = {f"worker-{worker.pid}": worker for worker in snapshot.workers}
    processes = {f"worker-{process.pid}": process for process in snapshot.processes or ()}
    entries = []
    for row in rows:
        if (worker := workers.get(row.key)) is not None:
            entries.append(_worker(row, worker))
        elif (process := processes.get(row.key)) is not None:
            entries.append(_process(row, process))
        else:
            entries.append(_text(row))
    return tuple(entries)


def charged(snapshot: Snapshot) -> str:
    """The name of the column with what the system charges."""
    kinds = {process.footprint_kind for process in snapshot.processes or ()}
    return "RSS" if kinds == {"rss"} else "FOOTPRINT"


def _worker(row: Row, worker: Worker) -> Entry:
    allocated = worker.total(lambda backend: backend.allocated)
    peak = worker.total(lambda backend: backend.peak)
    bound = "≤ " if worker.cached_is_bound else ""
    known, values = _outside(worker.process)
    sizes = {"HELD": worker.held, "ALLOCATED": allocated, "CACHED": worker.cached, "PEAK": peak}
    words = {name: wording.size(size) for name, size in sizes.items()}
    words["CACHED"] = bound + words["CACHED"]
    # The column says it already.
    notes = [note for note in _note(row).split(", ") if note != wording.cached(worker)]
    return Entry(
        row, worker.pid,
        {"PID": str(worker.pid), "NAME": _name(row, worker.name), "DEVICE": wording.device(worker),
         **words, **known, "NOTE": ", ".join(notes)},
        {"PID": worker.pid, **sizes, **values}, _is_child(row),
        "dim" if worker.state == "gone" else "",
    )  # fmt: skip


def _process(row: Row, process: Process) -> Entry:
    known, values = _outside(process)
    unknown = dict.fromkeys(("HELD", "ALLOCATED", "CACHED", "PEAK"), wording.UNKNOWN)
    nothing = dict.fromkeys(unknown)
    return Entry(
        row, process.pid,
        {"PID": str(process.pid), "NAME": _name(row, process.name),
         "DEVICE": "+".join(process.frameworks), **unknown, **known, "NOTE": _note(row)},
        {"PID": process.pid, **nothing, **values}, _is_child(row), "dim",
    )  # fmt: skip


def _text(row: Row) -> Entry:
    """A row that stands for several, or for one that is gone: what it says, where it fits."""
    name, device, size, note = (*row.cells, *("",) * 4)[:4] if row.cells else (row.text, "", "", "")
    known = {"NAME": name, "DEVICE": device, "RSS": size, "FOOTPRINT": size, "NOTE": note}
    return Entry(row, None, known, {}, _is_child(row), "dim")


def _outside(process: Process | None) -> tuple[dict[str, str], dict[str, float | None]]:
    size = None if process is None else process.footprint
    share = None if process is None else process.gpu_percent
    words = {name: wording.size(size) for name in ("RSS", "FOOTPRINT")}
    values: dict[str, float | None] = {"RSS": size, "FOOTPRINT": size, "GPU": share}
    return words | {"GPU": wording.percent(share)}, values


def _name(row: Row, name: str) -> str:
    """The whole of it: the menu's is cut, and tells doubles apart by the pid."""
    return _INDENT + name if _is_child(row) else name


def _is_child(row: Row) -> bool:
    return bool(row.cells) and row.cells[0].startswith(_INDENT)


def _note(row: Row) -> str:
    return row.cells[3] if len(row.cells) > 3 else ""
