"""The menu of one snapshot: machine, Free All, processes, dtypes, commands. Pure."""

from mpsbar.core.actions import Free
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.ui.bar import build_bar, is_unknown
from mpsbar.ui.command_rows import build_commands
from mpsbar.ui.dtype_rows import build_dtypes
from mpsbar.ui.process_rows import build_processes
from mpsbar.ui.rows import Menu, Row
from mpsbar.ui.text import findings, wording
from mpsbar.ui.text.wording import _
from mpsbar.ui.ui_state import UiState

SECTIONS = 4
_LOOKING_ON = UiState()  # a text on a terminal: nothing can be clicked in it


def build_menu(snapshot: Snapshot, ui_state: UiState = _LOOKING_ON) -> Menu:
    return Menu(
        bar=build_bar(snapshot, ui_state.settings.bar),
        sections=(
            _head(snapshot),
            build_processes(snapshot, ui_state),
            build_dtypes(snapshot) if ui_state.is_app else (),
            build_commands(snapshot, ui_state) if ui_state.is_app else (),
        ),
    )


def _head(snapshot: Snapshot) -> tuple[Row, ...]:
    rows = [Row("health", _health(snapshot)), Row("gpu", _gpu(snapshot))]
    rows.append(Row("found", wording.found(snapshot)))
    if snapshot.workers:
        rows.append(_free_all(snapshot))
    return tuple(row for row in rows if row.text)


def _health(snapshot: Snapshot) -> str:
    """The reason when not all is well, or when nobody knows."""
    if snapshot.health.level == "ok" and not is_unknown(snapshot.health):
        return wording.machine_briefly(snapshot.machine)
    return findings.say_health(snapshot.health, snapshot.names)


def _gpu(snapshot: Snapshot) -> str:
    words = (wording.gpu(snapshot.machine.gpu), wording.course(snapshot.gpu_utilization))
    return "   ".join(word for word in words if word)


def _free_all(snapshot: Snapshot) -> Row:
    text = _("Free All Caches")
    if snapshot.cached is not None:
        text += _(" (up to {size})").format(size=wording.size(snapshot.cached))
    frees = tuple(Free(worker.pid) for worker in snapshot.workers if _can_free(worker))
    ready = tuple(free for free in frees if free not in snapshot.pending)
    if frees and not ready:
        text = _("Freeing…")
    tip = _("Pauses each process briefly; its next steps may be slower.")
    return Row("free-all", text, actions=ready, tooltip=tip)


def _can_free(worker: Worker) -> bool:
    return not worker.methods or "free" in worker.methods
