"""The menu as data: Rows built by a pure function; front ends only draw them, str() reads well."""

from collections import Counter
from dataclasses import dataclass
from gettext import gettext as _

from mpsbar.model.action import Free, Freed
from mpsbar.model.snapshot import Snapshot, Worker
from mpsbar.views import wording

NAME_WIDTH = 28


@dataclass(frozen=True, slots=True)
class Row:
    """One line; `key` stays the same while the text changes. No actions: nothing to click."""

    key: str
    text: str
    actions: tuple[Free, ...] = ()
    children: tuple["Row", ...] = ()
    tooltip: str = ""


SEPARATOR = Row("-", "")


@dataclass(frozen=True, slots=True)
class Menu:
    title: str
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        return "\n".join([self.title, *(_draw(row) for row in self.rows)])


def build_menu(snapshot: Snapshot, outcomes: dict[int, Freed] | None = None) -> Menu:
    """`outcomes`: how the last Free of a pid ended, shown in its row."""
    workers = snapshot.workers
    head = [Row("health", wording.workers_connected(len(workers)))]
    if workers:
        head += [_free_all(snapshot), SEPARATOR]
    doubles = Counter(worker.name for worker in workers)
    rows = [
        _worker(worker, is_child, doubles[worker.name] > 1, (outcomes or {}).get(worker.pid))
        for worker, is_child in snapshot.families
    ]
    return Menu(title=_title(snapshot), rows=(*head, *rows))


def _title(snapshot: Snapshot) -> str:
    """The bar: the icon alone while nothing is connected."""
    return f"⬢ {wording.size(snapshot.held)}" if snapshot.held is not None else "⬢"


def _free_all(snapshot: Snapshot) -> Row:
    text = _("Free All Caches")
    if snapshot.cached is not None:
        text += _(" (up to {size})").format(size=wording.size(snapshot.cached))
    return Row("free-all", text, tuple(Free(worker.pid) for worker in snapshot.workers))


def _worker(worker: Worker, is_child: bool, is_double: bool, outcome: Freed | None) -> Row:
    name = f"{worker.name} {worker.pid}" if is_double else worker.name
    name = f"└ {name}" if is_child else name
    notes = [wording.state(worker), wording.cached(worker)]
    if outcome is not None:
        notes.append(wording.freed_briefly(outcome))
    details = ", ".join(note for note in notes if note)
    text = f"{wording.shorten(name, NAME_WIDTH):{NAME_WIDTH}} {wording.device(worker):>8}"
    text += f" {wording.size(worker.held):>8}" + (f"  ({details})" if details else "")
    free = Row(
        f"free-{worker.pid}",
        _("Free Cache"),
        (Free(worker.pid),),
        tooltip=_("Pauses the process briefly; its next steps may be slower."),
    )
    return Row(f"worker-{worker.pid}", text, children=(free,))


def _draw(row: Row) -> str:
    if row is SEPARATOR:
        return " ─"
    children = " · ".join(child.text for child in row.children)
    return f" {row.text}" + (f"   ▸ {children}" if children else "")
