"""`mpsbar status`: the snapshot as a table for people. Pure."""

from mpsbar.core.advice import advise
from mpsbar.core.findings import NOT_PROBED, DtypeHealth
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Family, Snapshot, Worker
from mpsbar.ui.columns import COLUMNS
from mpsbar.ui.text import findings, wording
from mpsbar.ui.text.cells import Paint, in_colour, plain, width
from mpsbar.ui.text.wording import _

_NAME_WIDTH = 40
# More advice than this is not read under a table.
_MOST_ADVICE = 2
# PIDs named in one line; the table has them all.
_MOST_PIDS = 5


def render_status(
    snapshot: Snapshot, is_coloured: bool = False, dtypes: DtypeHealth = NOT_PROBED
) -> str:
    """Of the dtypes only surprises are shown."""
    paint = in_colour if is_coloured else plain
    parts = [_render_head(snapshot, dtypes, paint)]
    if snapshot.families:
        parts.append(render_table(snapshot, paint))
    parts += ["\n".join(_connect_lines(snapshot)), "\n".join(_advice_lines(snapshot, dtypes))]
    return "\n\n".join(part for part in parts if part)


def _render_head(snapshot: Snapshot, dtypes: DtypeHealth, paint: Paint) -> str:
    health = snapshot.health
    lines = [wording.machine(snapshot.machine), wording.gpu(snapshot.machine.gpu)]
    lines.append(paint(findings.say_health(health, snapshot.names), health.level))
    lines.append(wording.found(snapshot))
    if dtypes.surprise:
        lines.append(paint(_("dtypes: {headline}").format(headline=dtypes.surprise), "warning"))
    if snapshot.problems:
        lines.append(paint(wording.problems(len(snapshot.problems)), "dim"))
    return "\n".join(line for line in lines if line)


def render_table(snapshot: Snapshot, paint: Paint = plain) -> str:
    rows = [row for family in snapshot.families for row in _family_rows(family)]
    lines = [""] * (len(rows) + 1)
    for column in COLUMNS:
        words = [row.get(column.key, "") for row in rows]
        if "status" in column.hidden_if_unknown and not column.is_known(words):
            continue
        words = [column.head(snapshot), *words]
        widest = max(map(width, words))
        for at, word in enumerate(words):
            room = " " * (widest - width(word))
            lines[at] += (room + word if column.to_right else word + room) + "  "
    head, *others = (line.rstrip() for line in lines)
    return "\n".join([paint(head, "head"), *others])


def _family_rows(family: Family) -> list[dict[str, str]]:
    rows = [_cells(family.head, "")]
    rows += [_cells(worker, "└ ") for worker in family.workers]
    rows += [_cells(process, "└ ") for process in family.distinct]
    if family.alike:
        name = "└ " + wording.children(len(family.alike))
        charged = wording.charged_together(family.alike)
        rows.append({"NAME": name, "FOOTPRINT": charged, "NOTE": _("not connected")})
    return rows


def _cells(process: Worker | Process, indent: str) -> dict[str, str]:
    cells = {column.key: column.cell(process) for column in COLUMNS}
    cells["NAME"] = indent + wording.shorten(process.name, _NAME_WIDTH)
    if isinstance(process, Process):
        cells["DEVICE"] = wording.UNKNOWN  # what it has loaded is in the note
    return cells


def _connect_lines(snapshot: Snapshot) -> list[str]:
    """How to connect each unconnected process; processes with the same answer share a line."""
    pids_by_text: dict[str, list[str]] = {}
    for family in snapshot.families:
        if isinstance(family.head, Process):
            how = wording.how_to_connect_process(family.head)
            pids_by_text.setdefault(how, []).append(str(family.head.pid))
    return [
        _("To see the memory of {pids}: {how}").format(pids=_listed(pids), how=how)
        for how, pids in pids_by_text.items()
    ]


def _listed(pids: list[str]) -> str:
    shown = ", ".join(pids[:_MOST_PIDS])
    more = len(pids) - _MOST_PIDS
    return _("{pids} (and {n} more)").format(pids=shown, n=more) if more > 0 else shown


def _advice_lines(snapshot: Snapshot, dtypes: DtypeHealth) -> list[str]:
    advised = advise(snapshot, snapshot.health, dtypes.failed)
    shown = [advice for advice in advised if advice.code != "connect"]
    names = snapshot.names
    return [
        f"→ {findings.say_advice(advice, names.get(advice.pid or 0))}"
        for advice in shown[:_MOST_ADVICE]
    ]
