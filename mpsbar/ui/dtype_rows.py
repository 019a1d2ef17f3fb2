"""The rows of the dtype probe: what the last one found, and the one to run or cancel it. Pure."""

from functools import lru_cache

from mpsbar.core.actions import CancelProbe, ProbeDtypes
from mpsbar.core.dtype_results import Probe
from mpsbar.core.snapshot import Snapshot
from mpsbar.dtypes.summary import build_rows, say_headline, say_progress
from mpsbar.ui.rows import Row
from mpsbar.ui.text.wording import _


def build_dtypes(snapshot: Snapshot) -> tuple[Row, ...]:
    return (_headline(snapshot.dtypes), _run(snapshot))


@lru_cache(maxsize=2)
def _headline(probe: Probe | None) -> Row:
    """Judged once for each probe: hundreds of cells do not change while a menu is open."""
    text = _("dtypes: {headline}").format(headline=say_headline(probe))
    if probe is None or not probe.cells:
        return Row("dtypes", text)
    about = f"torch {probe.torch} · {probe.device} · {probe.python}"
    rows = [Row(f"dtype-{row.dtype}", row.text, tooltip=row.why) for row in build_rows(probe)]
    return Row("dtypes", text, children=(Row("dtypes-of", about), *rows), tooltip=about)


def _run(snapshot: Snapshot) -> Row:
    if snapshot.probing is not None:
        text = _("{progress}  (Cancel)").format(progress=say_progress(snapshot.probing))
        return Row("probe", text, actions=(CancelProbe(),))
    if ProbeDtypes() in snapshot.pending:
        return Row("probe", _("Probing…"))
    tip = _("Runs small computations in a worker's Python, at the lowest priority.")
    return Row("probe", _("Run dtype Probe"), actions=(ProbeDtypes(),), tooltip=tip)
