"""The section of the report on `mpsbar probe --deep`: a heat map of every operation. Pure."""

from datetime import tzinfo

from mpsbar.dtypes.deep_results import DeepCell, DeepProbe
from mpsbar.dtypes.deep_text import say_deep_headline
from mpsbar.dtypes.text import states
from mpsbar.history.report.dtypes import SIGNS, build_legend, say_dated_subject
from mpsbar.history.report.html import Markup, build_heat_map, build_table, join, tag
from mpsbar.language import _

_MAX_NEWS = 200


def build_operations(probe: DeepProbe | None, home: str, zone: tzinfo | None) -> Markup | None:
    if probe is None or not probe.cells:
        return None
    parts = [
        tag("p", say_deep_headline(probe), class_="headline"),
        tag("p", say_dated_subject(probe, home, zone), class_="note"),
        _news(probe),
        _heat_map(probe),
        build_legend({cell.state for cell in probe.cells}),
    ]
    return join(part for part in parts if part is not None)


def _news(probe: DeepProbe) -> Markup | None:
    worse = probe.find_news("worse")
    if not worse:
        return None
    title = _("Worse than torch expects")
    headers = (_("Operation"), _("dtype"), _("Here"), _("Reason"))
    rows = [
        (cell.operation, cell.dtype, states()[cell.state], cell.text or "")
        for cell in worse[:_MAX_NEWS]
    ]
    more = len(worse) - len(rows)
    note = tag("p", _("… and {n} more").format(n=more)) if more else Markup("")
    return join([tag("h3", title), build_table(title, headers, rows), note])


def _heat_map(probe: DeepProbe) -> Markup:
    """Renders thousands of cells, each as one short element: colour and sign show its state."""
    known: dict[str, dict[str, DeepCell]] = {}
    for cell in probe.cells:
        known.setdefault(cell.operation, {})[cell.dtype] = cell
    rows = [
        (name, [_heat_cell(cells.get(dtype)) for dtype in probe.dtypes])
        for name, cells in known.items()
    ]
    table = build_heat_map(_("Every operation and dtype"), "heat dense", probe.dtypes, rows)
    summary = _("{n} operations × {dtypes} dtypes").format(n=len(known), dtypes=len(probe.dtypes))
    return tag("details", tag("summary", summary), table)


def _heat_cell(cell: DeepCell | None) -> Markup:
    state = "unknown" if cell is None else cell.state
    return tag("td", SIGNS.get(state, "?"), class_=f"spot {state}")
