"""`mpsbar status`: the snapshot of this computer as a table for people. Pure."""

from mpsbar.core.advice import advise
from mpsbar.core.findings import NOT_PROBED, DtypeHealth
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Snapshot
from mpsbar.language import _
from mpsbar.ui.process_table import build_rows, choose_columns
from mpsbar.ui.text import cells, wording
from mpsbar.ui.text.advice import say_advice
from mpsbar.ui.text.alerts import is_unknown, say_health
from mpsbar.ui.text.cells import Paint, in_colour, plain
from mpsbar.ui.text.machine import describe_gpu, describe_machine

_GAP = "  "
# More advice than this is not read under a table.
_MAX_ADVICE = 2
# PIDs named in one line; the table has them all.
_MAX_PIDS = 5


def render_status(
    snapshot: Snapshot,
    is_coloured: bool = False,
    dtypes: DtypeHealth = NOT_PROBED,
    width: int | None = None,
) -> str:
    """Renders the whole text. Of the dtypes it has only surprises; no row of the table is longer
    than `width`."""
    paint = in_colour if is_coloured else plain
    parts = [_render_head(snapshot, dtypes, paint)]
    if snapshot.families:
        parts.append(render_table(snapshot, paint, width))
    parts += ["\n".join(_connect_lines(snapshot)), "\n".join(_advice_lines(snapshot, dtypes))]
    return "\n\n".join(part for part in parts if part)


def _render_head(snapshot: Snapshot, dtypes: DtypeHealth, paint: Paint) -> str:
    health = snapshot.health
    lines = [describe_machine(snapshot.machine), describe_gpu(snapshot.machine.gpu)]
    colour = "dim" if is_unknown(health) and health.level == "ok" else health.level
    lines.append(paint(say_health(health, snapshot.names), colour))
    lines.append(wording.found(snapshot))
    if dtypes.surprise:
        lines.append(paint(_("dtypes: {headline}").format(headline=dtypes.surprise), "warning"))
    if snapshot.problems:
        lines.append(paint(wording.problems(len(snapshot.problems)), "dim"))
    return "\n".join(line for line in lines if line)


def render_table(snapshot: Snapshot, paint: Paint = plain, width: int | None = None) -> str:
    """Renders the processes in lines of at most `width`; without one, all columns uncut."""
    rows = build_rows(snapshot)
    columns = choose_columns(rows, snapshot, width, "status")
    header = _GAP.join(
        cells.fit(column.header, column.width, column.column.to_right) for column in columns
    )
    lines = [
        _GAP.join(column.fit(row.cells.get(column.key, "")) for column in columns) for row in rows
    ]
    return "\n".join([paint(header.rstrip(), "head"), *(line.rstrip() for line in lines)])


def _connect_lines(snapshot: Snapshot) -> list[str]:
    """How to connect each unconnected process; processes with the same answer share a line."""
    pids_by_text: dict[str, list[str]] = {}
    for family in snapshot.families:
        if isinstance(family.root, Process):
            how = wording.how_to_connect_process(family.root)
            pids_by_text.setdefault(how, []).append(str(family.root.pid))
    return [
        _("To see the memory of {pids}: {how}").format(pids=_listed(pids), how=how)
        for how, pids in pids_by_text.items()
    ]


def _listed(pids: list[str]) -> str:
    shown = ", ".join(pids[:_MAX_PIDS])
    more = len(pids) - _MAX_PIDS
    return _("{pids} (and {n} more)").format(pids=shown, n=more) if more > 0 else shown


def _advice_lines(snapshot: Snapshot, dtypes: DtypeHealth) -> list[str]:
    advised = advise(snapshot, snapshot.health, dtypes.failed)
    shown = [advice for advice in advised if advice.code != "connect"]
    names = snapshot.names
    return [f"→ {say_advice(advice, names.get(advice.pid or 0))}" for advice in shown[:_MAX_ADVICE]]
