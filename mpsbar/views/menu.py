"""The menu of one snapshot: machine, Free All, processes, dtypes, commands. Pure."""

from mpsbar.model.action import Free
from mpsbar.model.desk import Desk
from mpsbar.model.snapshot import Snapshot, Worker
from mpsbar.views import reasons, wording
from mpsbar.views.bar import build_bar, is_unknown
from mpsbar.views.command_rows import build_commands
from mpsbar.views.dtype_rows import build_dtypes
from mpsbar.views.language import _
from mpsbar.views.process_rows import build_processes
from mpsbar.views.row import Menu, Row

SECTIONS = 4
_LOOKING_ON = Desk()  # a text on a terminal: nothing can be clicked in it


def build_menu(snapshot: Snapshot, desk: Desk = _LOOKING_ON) -> Menu:
    return Menu(
        bar=build_bar(snapshot, desk.settings.bar),
        sections=(
            _head(snapshot),
            build_processes(snapshot, desk),
            build_dtypes(snapshot) if desk.is_app else (),
            build_commands(snapshot, desk) if desk.is_app else (),
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
    return reasons.say_health(snapshot.health, snapshot.names)


def _gpu(snapshot: Snapshot) -> str:
    words = (wording.gpu(snapshot.machine.gpu), wording.course(snapshot.gpu_course))
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
