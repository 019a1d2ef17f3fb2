"""What there is to say of one process beside its numbers: its state, what was asked of it. Pure."""

from collections.abc import Iterator

from mpsbar.core.actions import Free, Limit
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import AutoFreeStatus, Snapshot, Worker
from mpsbar.language import _
from mpsbar.ui.text import outcomes, wording


def list_notes(process: Worker | Process, snapshot: Snapshot) -> list[str]:
    """The notes on a process: its state, what was asked of it, a reset of the GPU."""
    state = (
        wording.state(process)
        if isinstance(process, Worker)
        else wording.not_connected(process)
    )  # fmt: skip
    notes = [state, *list_action_notes(process, snapshot), say_reset(process.pid, snapshot)]
    return [note for note in notes if note]


def list_action_notes(process: Worker | Process, snapshot: Snapshot) -> Iterator[str]:
    """Which actions on this process are under way, or ended a moment ago."""
    pid = process.pid
    if Free(pid) in snapshot.pending:
        yield _("freeing…")
    elif isinstance(process, Worker) and process.kept_free:
        yield _("will be freed when possible")
    elif pid in snapshot.freed:
        yield outcomes.freed_briefly(snapshot.freed[pid])
    if any(isinstance(action, Limit) and action.pid == pid for action in snapshot.pending):
        yield _("setting its limit…")
    elif pid in snapshot.limited:
        yield outcomes.limited_briefly(snapshot.limited[pid])
    if snapshot.auto_free.get(pid, AutoFreeStatus()).is_left_alone and pid not in snapshot.freed:
        yield _("cache refilled 3 times: left alone")
    if pid in snapshot.stopped:
        yield outcomes.stopped(snapshot.stopped[pid])


def say_reset(pid: int, snapshot: Snapshot) -> str:
    """Until it ends: its results since then may be wrong."""
    reset = snapshot.gpu_resets.get(pid)
    if reset is None:
        return ""
    return _("GPU reset at {time}, results may be wrong").format(time=wording.clock(reset))
