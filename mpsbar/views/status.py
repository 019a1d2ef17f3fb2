"""`mpsbar status`: the snapshot as a table for people. Pure."""

from mpsbar.model.advice import advise
from mpsbar.model.dtype_health import NOT_PROBED, DtypeHealth
from mpsbar.model.machine import Process
from mpsbar.model.snapshot import Family, Snapshot, Worker
from mpsbar.views import colour, reasons, wording
from mpsbar.views.colour import Paint
from mpsbar.views.language import _

_RIGHT = {"PID", "HELD", "ALLOCATED", "CACHED", "PEAK", "FOOTPRINT", "RSS", "GPU"}
_NAME_WIDTH = 40
# Of what could be advised, what people read under a table.
_MOST_ADVICE = 2
# In one line; the table has them all.
_MOST_PIDS = 5


def render_status(
    snapshot: Snapshot, is_coloured: bool = False, dtypes: DtypeHealth = NOT_PROBED
) -> str:
    """Of the dtypes only what surprises is told."""
    paint = colour.paint if is_coloured else colour.plain
    parts = [_render_head(snapshot, dtypes, paint)]
    if snapshot.families:
        parts.append(render_table(snapshot, paint))
    parts += ["\n".join(_connect_lines(snapshot)), "\n".join(_advice_lines(snapshot, dtypes))]
    return "\n\n".join(part for part in parts if part)


def _render_head(snapshot: Snapshot, dtypes: DtypeHealth, paint: Paint) -> str:
    health = snapshot.health
    lines = [wording.machine(snapshot.machine), wording.gpu(snapshot.machine.gpu)]
    lines.append(paint(reasons.say_health(health, snapshot.names), health.level))
    lines.append(wording.found(snapshot))
    if dtypes.surprise:
        lines.append(paint(_("dtypes: {told}").format(told=dtypes.surprise), "warning"))
    if snapshot.problems:
        lines.append(paint(wording.problems(len(snapshot.problems)), "dim"))
    return "\n".join(line for line in lines if line)


def render_table(snapshot: Snapshot, paint: Paint = colour.plain) -> str:
    kinds = {process.footprint_kind for process in snapshot.processes or ()}
    charged = "RSS" if kinds == {"rss"} else "FOOTPRINT"
    head = ("PID", "NAME", "DEVICE", "HELD", "ALLOCATED", "CACHED", "PEAK", charged, "GPU", "NOTE")
    rows = [row for family in snapshot.families for row in _family_rows(family)]
    table = [head, *rows]
    shown = [index for index, name in enumerate(head) if name != "GPU" or _is_known(rows, index)]
    table = [tuple(cells[index] for index in shown) for cells in table]
    widths = [max(map(wording.width, column)) for column in zip(*table, strict=True)]
    lines = [_line(cells, widths, table[0]) for cells in table]
    return "\n".join([paint(lines[0], "head"), *lines[1:]])


def _is_known(rows: list[tuple[str, ...]], column: int) -> bool:
    return any(row[column] not in ("", wording.UNKNOWN) for row in rows)


def _family_rows(family: Family) -> list[tuple[str, ...]]:
    rows = [_cells(family.head, "")]
    rows += [_cells(worker, "└ ") for worker in family.workers]
    rows += [_cells(process, "└ ") for process in family.distinct]
    if family.alike:
        name = "└ " + wording.children(len(family.alike))
        charged = wording.charged_together(family.alike)
        rows.append(("", name, "", "", "", "", "", charged, "", _("not connected")))
    return rows


def _cells(one: Worker | Process, indent: str) -> tuple[str, ...]:
    name = indent + wording.shorten(one.name, _NAME_WIDTH)
    if isinstance(one, Process):
        unknown = (wording.UNKNOWN,) * 5
        return (str(one.pid), name, *unknown, *_outside(one), wording.not_connected(one))
    bound = "≤ " if one.cached_is_bound else ""
    return (
        str(one.pid),
        name,
        wording.device(one),
        wording.size(one.held),
        wording.size(one.total(lambda backend: backend.allocated)),
        bound + wording.size(one.cached),
        wording.size(one.total(lambda backend: backend.peak)),
        *_outside(one.process),
        wording.state(one),
    )


def _outside(process: Process | None) -> tuple[str, str]:
    if process is None:
        return wording.UNKNOWN, wording.UNKNOWN
    return wording.size(process.footprint), wording.percent(process.gpu_percent)


def _line(cells: tuple[str, ...], widths: list[int], head: tuple[str, ...]) -> str:
    padded = []
    for cell, width, name in zip(cells, widths, head, strict=True):
        room = " " * (width - wording.width(cell))
        padded.append(room + cell if name in _RIGHT else cell + room)
    return "  ".join(padded).rstrip()


def _connect_lines(snapshot: Snapshot) -> list[str]:
    """How to connect each unconnected head, the same text once for all it helps."""
    ways: dict[str, list[str]] = {}
    for family in snapshot.families:
        if isinstance(family.head, Process):
            ways.setdefault(wording.way_to_connect(family.head), []).append(str(family.head.pid))
    return [
        _("To see what {pids} holds: {way}").format(pids=_listed(pids), way=way)
        for way, pids in ways.items()
    ]


def _listed(pids: list[str]) -> str:
    shown = ", ".join(pids[:_MOST_PIDS])
    more = len(pids) - _MOST_PIDS
    return _("{pids} (and {n} more)").format(pids=shown, n=more) if more > 0 else shown


def _advice_lines(snapshot: Snapshot, dtypes: DtypeHealth) -> list[str]:
    every = advise(snapshot, snapshot.health, dtypes.failed)
    told = [advice for advice in every if advice.code != "connect"]
    names = snapshot.names
    return [
        f"→ {reasons.say_advice(advice, names.get(advice.pid or 0))}"
        for advice in told[:_MOST_ADVICE]
    ]
