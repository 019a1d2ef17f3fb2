"""The menu as data: Rows built by a pure function; front ends only draw them, str() reads well."""

from collections import Counter
from dataclasses import dataclass
from gettext import gettext as _

from mpsbar.model.action import Free, Freed
from mpsbar.model.machine import Process
from mpsbar.model.snapshot import Family, Snapshot, Worker
from mpsbar.views import reasons, wording

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


def build_menu(snapshot: Snapshot) -> Menu:
    families = snapshot.families
    doubles = Counter(one.name for family in families for one in _shown(family))
    rows = [row for family in families for row in _family(family, doubles, snapshot.freed)]
    return Menu(title=_title(snapshot), rows=(*_head(snapshot), *rows))


def _head(snapshot: Snapshot) -> list[Row]:
    health = snapshot.health
    text = wording.machine_briefly(snapshot.machine)
    if health.level != "ok":
        text = reasons.say_health(health, snapshot.names)
    rows = [Row("health", text), Row("gpu", wording.gpu(snapshot.machine.gpu))]
    rows.append(Row("found", wording.found(snapshot)))
    if snapshot.workers:
        rows.append(_free_all(snapshot))
    if snapshot.families:
        rows.append(SEPARATOR)
    return [row for row in rows if row.text or row is SEPARATOR]


def _title(snapshot: Snapshot) -> str:
    """The bar: the icon alone while nothing is connected."""
    return f"⬢ {wording.size(snapshot.held)}" if snapshot.held is not None else "⬢"


def _free_all(snapshot: Snapshot) -> Row:
    text = _("Free All Caches")
    if snapshot.cached is not None:
        text += _(" (up to {size})").format(size=wording.size(snapshot.cached))
    return Row("free-all", text, tuple(Free(worker.pid) for worker in snapshot.workers))


def _shown(family: Family) -> list[Worker | Process]:
    """Who has a row of their own; two or more unconnected children share one."""
    return [family.head, *family.workers, *(family.others if len(family.others) == 1 else ())]


def _family(family: Family, doubles: Counter[str], freed: dict[int, Freed]) -> list[Row]:
    rows = []
    for one in _shown(family):
        name = f"{one.name} {one.pid}" if doubles[one.name] > 1 else one.name
        name = name if one is family.head else f"└ {name}"
        if isinstance(one, Worker):
            rows.append(_worker(one, name, freed.get(one.pid)))
        else:
            rows.append(_process(one, name))
    if len(family.others) > 1:
        rows.append(_others(family))
    return rows


def _worker(worker: Worker, name: str, outcome: Freed | None) -> Row:
    notes = [wording.state(worker), wording.cached(worker)]
    if outcome is not None:
        notes.append(wording.freed_briefly(outcome))
    charged = None if worker.process is None else worker.process.footprint
    shown = wording.size(charged if worker.held is None else worker.held)
    free = Row(
        f"free-{worker.pid}",
        _("Free Cache"),
        (Free(worker.pid),),
        tooltip=_("Pauses the process briefly; its next steps may be slower."),
    )
    text = _columns(name, wording.device(worker), shown, notes)
    return Row(f"worker-{worker.pid}", text, children=(free,))


def _process(process: Process, name: str) -> Row:
    notes = [_("not connected")]
    size = wording.size(process.footprint)
    text = _columns(name, "+".join(process.frameworks), size, notes)
    return Row(f"process-{process.pid}", text, tooltip=wording.way_to_connect(process))


def _others(family: Family) -> Row:
    name = "└ " + wording.children(len(family.others))
    size = wording.charged_together(family.others)
    return Row(f"others-{family.head.pid}", _columns(name, "", size, [_("not connected")]))


def _columns(name: str, device: str, size: str, notes: list[str]) -> str:
    details = ", ".join(note for note in notes if note)
    text = f"{wording.shorten(name, NAME_WIDTH):{NAME_WIDTH}} {device:>9}"
    return text + f" {size:>8}" + (f"  ({details})" if details else "")


def _draw(row: Row) -> str:
    if row is SEPARATOR:
        return " ─"
    children = " · ".join(child.text for child in row.children)
    return f" {row.text}" + (f"   ▸ {children}" if children else "")
