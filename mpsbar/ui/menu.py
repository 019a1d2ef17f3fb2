"""The menu of one snapshot: machine, Free All, processes, dtypes, commands. Pure."""

from functools import lru_cache

from mpsbar.core.actions import Command, Free, ProbeDtypes
from mpsbar.core.dtype_results import Probe
from mpsbar.core.snapshot import Snapshot
from mpsbar.dtypes.summary import build_rows, say_headline, say_progress
from mpsbar.language import _
from mpsbar.ui.bar import build_bar
from mpsbar.ui.command_rows import build_commands, build_welcome
from mpsbar.ui.process_rows import build_processes
from mpsbar.ui.process_submenu import can_free
from mpsbar.ui.rows import Menu, Row, UiState
from mpsbar.ui.text import wording
from mpsbar.ui.text.alerts import is_unknown, say_health
from mpsbar.ui.text.machine import describe_gpu, describe_machine_briefly

SECTIONS = 5
_PRINTED = UiState()  # as text, in which nothing can be clicked


def build_menu(snapshot: Snapshot, ui_state: UiState = _PRINTED) -> Menu:
    return Menu(
        bar=build_bar(snapshot, ui_state.settings.bar),
        sections=(
            build_welcome(snapshot, ui_state) if ui_state.is_clickable else (),
            _head(snapshot, ui_state),
            build_processes(snapshot, ui_state),
            (_dtypes(snapshot.dtypes), _probe(snapshot)) if ui_state.is_clickable else (),
            build_commands(snapshot, ui_state) if ui_state.is_clickable else (),
        ),
    )


def _head(snapshot: Snapshot, ui_state: UiState) -> tuple[Row, ...]:
    rows = [Row("health", _health(snapshot)), Row("gpu", _gpu(snapshot))]
    # Who has only the app has no command to type.
    rows.append(Row("found", wording.found(snapshot, with_commands=not ui_state.is_clickable)))
    if snapshot.workers:
        rows.append(_free_all(snapshot))
    return tuple(row for row in rows if row.text)


def _health(snapshot: Snapshot) -> str:
    """Returns the machine, or the reason when something is wrong or not known."""
    if snapshot.health.level == "ok" and not is_unknown(snapshot.health):
        return describe_machine_briefly(snapshot.machine)
    return say_health(snapshot.health, snapshot.names)


def _gpu(snapshot: Snapshot) -> str:
    words = (describe_gpu(snapshot.machine.gpu), wording.sparkline(snapshot.gpu_utilization))
    return "   ".join(word for word in words if word)


def _free_all(snapshot: Snapshot) -> Row:
    text = _("Free All Caches")
    if snapshot.cached is not None:
        text += _(" ({size})").format(size=wording.size(snapshot.cached))
    frees = tuple(
        Free(worker.pid, started=worker.started) for worker in snapshot.workers if can_free(worker)
    )
    ready = tuple(free for free in frees if free not in snapshot.pending)
    if frees and not ready:
        text = _("Freeing…")
    tip = _("Pauses each process briefly; its next steps may be slower.")
    return Row("free-all", text, actions=ready, tooltip=tip)


@lru_cache(maxsize=2)
def _dtypes(probe: Probe | None) -> Row:
    """The result of the last probe. Cached: judging hundreds of cells at every reading is slow."""
    text = _("dtypes: {headline}").format(headline=say_headline(probe))
    if probe is None or not probe.cells:
        return Row("dtypes", text)
    about = f"torch {probe.torch} · {probe.device} · {probe.python}"
    rows = [Row(f"dtype-{row.dtype}", row.text, tooltip=row.why) for row in build_rows(probe)]
    return Row("dtypes", text, children=(Row("dtypes-of", about), *rows), tooltip=about)


def _probe(snapshot: Snapshot) -> Row:
    if snapshot.probing is not None:
        text = _("{progress}  (Cancel)").format(progress=say_progress(snapshot.probing))
        return Row("probe", text, actions=(Command.CANCEL_PROBE,))
    if ProbeDtypes() in snapshot.pending:
        return Row("probe", _("Probing…"))
    tip = _("Runs small computations in a connected process's Python, at the lowest priority.")
    return Row("probe", _("Run dtype Probe"), actions=(ProbeDtypes(),), tooltip=tip)
