"""How actions ended, in words, and the notes on a process that they leave. Pure."""

from collections.abc import Iterator

from mpsbar.agent.frameworks import join_limitable
from mpsbar.agent.wording import say_why_busy
from mpsbar.core.actions import Connected, Free, Freed, Limit, Limited, Stopped, Tensors
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import AutoFreeStatus, Snapshot, WaitingFree, Worker
from mpsbar.language import _
from mpsbar.ui.text import wording


def say_freed(outcome: Freed) -> str:
    """One sentence on how a Free ended."""
    if outcome.state == "refilled":
        return say_left_alone(outcome.freed)
    if outcome.state == "done":
        return _freed_done(outcome)
    return {
        "busy": _busy(outcome),
        "waiting": _waiting(outcome),
        "cancelled": _("Free When Possible was canceled"),
        "gone": _("no connected process has this PID (run mpsbar status to list them)"),
        "ended": _("the process has ended"),
        "silent": _("no answer within {time}; the cache may still be freed later").format(
            time=wording.duration(outcome.seconds)
        ),
        "refused": _("couldn't connect: {error}").format(error=outcome.error),
        "failed": _("failed: {error}").format(error=outcome.error or wording.UNKNOWN),
    }[outcome.state]


def say_freed_briefly(outcome: Freed) -> str:
    """The outcome for a row, which also shows what is still cached."""
    if outcome.state in ("gone", "ended"):
        return _("the process has ended")
    if outcome.state != "done":
        return say_freed(outcome)
    words = _("freed {size} in {time}").format(
        size=wording.size(outcome.freed), time=wording.duration(outcome.seconds)
    )
    if outcome.when_possible:
        words += _(", at the first safe moment")
    why = say_free_cause(outcome.cause)
    return f"{words} ({why})" if why else words


def say_waiting_free(waiting: WaitingFree) -> str:
    """Says how long a Free waits for a safe moment, and why there was none at its last attempt."""
    words = _("Waits for a safe moment, up to {time} more.").format(
        time=wording.duration(waiting.left)
    )
    if waiting.reason is None:
        return words
    why = say_why_busy(waiting.reason, waiting.where)
    return f"{words} " + _("Not freed yet: {reason}.").format(reason=why)


def say_free_cause(code: str | None) -> str:
    """Why mpsbar freed a cache by itself; nothing where somebody asked for it."""
    return {
        "keep_below": _("automatically: its cache was above the chosen size"),
        "idle": _("automatically: it was idle"),
        "pressure": _("automatically: memory pressure was critical"),
    }.get(code or "", "")


def say_left_alone(returned: int | None) -> str:
    """What `refilled` means: its cache is not freed automatically for a while."""
    if not returned:
        return _("automatic freeing returned nothing 3 times: paused for an hour")
    return _("cache refilled 3 times: automatic freeing paused for an hour")


def say_limited(outcome: Limited) -> str:
    """One sentence on how a limit was set."""
    if outcome.state == "done":
        return _limited_done(outcome)
    others = _("only {devices} memory can be limited, and it uses none").format(
        devices=join_limitable(_("and"))
    )
    impossible = {
        "not_in_use": _("it doesn't use the GPU yet; set the limit when it does"),
        "not_known": _("can't tell whether it uses the GPU"),
    }.get(outcome.reason or "", others)
    return {
        "busy": _("busy: {reason}; nothing was changed, try again").format(
            reason=say_why_busy(outcome.reason, outcome.where)
        ),
        "above": _("it needs {size}, more than {limit}: no limit was set").format(
            size=wording.size(outcome.least), limit=wording.size(outcome.asked)
        )
        + _freed_first(outcome),
        "impossible": impossible,
        "gone": _("no connected process has this PID (run mpsbar status to list them)"),
        "ended": _("the process has ended"),
        "silent": _("no answer within {time}; the limit may still be set later").format(
            time=wording.duration(outcome.seconds)
        ),
        "refused": _("couldn't connect: {error}").format(error=outcome.error),
        "failed": _("failed: {error}").format(error=outcome.error or wording.UNKNOWN),
    }[outcome.state]


def say_limited_briefly(outcome: Limited) -> str:
    """The outcome for a row, which also shows a limit that is in force."""
    if outcome.state in ("gone", "ended"):
        return _("the process has ended")
    if outcome.state == "done":
        return "" if outcome.limit is not None else _("limit off")
    return _("limit not set: {why}").format(why=say_limited(outcome))


def _limited_done(outcome: Limited) -> str:
    if outcome.asked is None and outcome.limit is None:
        return _("limit removed")
    if outcome.asked is None:
        return _("reset to its environment's limit, {limit}").format(
            limit=wording.size(outcome.limit)
        )
    words = _("limited to {limit}; it holds {held}").format(
        limit=wording.size(outcome.asked), held=wording.size(outcome.held)
    )
    return words + _freed_first(outcome)


def _freed_first(outcome: Limited) -> str:
    if not outcome.freed:
        return ""
    return _("; {size} of its cache was freed").format(size=wording.size(outcome.freed))


def say_not_done(state: str) -> str:
    """Why a Free or a limit did nothing, in a few words, from the state that history recorded."""
    return {
        "busy": _("busy"),
        "gone": _("not connected"),
        "ended": _("the process has ended"),
        "silent": _("no answer"),
        "refused": _("couldn't connect"),
        "failed": _("failed"),
        "refilled": _("the cache filled up again each time"),
        "above": _("it holds more than that"),
        "impossible": _("nothing there can be limited"),
    }.get(state, state)


def say_stopped(outcome: Stopped) -> str:
    """How stopping a process ended."""
    return {
        "asked": _("asked to terminate (SIGTERM)")
        if outcome.firmly
        else _("asked to stop (SIGINT)"),
        "gone": _("has already ended"),
        "another": _("its PID now belongs to another process; nothing was sent"),
        "not_allowed": _("you don't have permission to stop it"),
        "failed": _("couldn't be stopped: {error}").format(error=outcome.error or wording.UNKNOWN),
    }[outcome.state]


def say_connected(outcome: Connected) -> str:
    """One sentence on how connecting an environment ended."""
    later = _("Restart the process for this to take effect.")
    return {
        "enabled": _("The agent answered. {later}").format(later=later),
        "enabled_before": _("It was already connected. {later}").format(later=later),
        "no_answer": _("The files are in place, but the agent didn't answer a test call."),
        "refused": outcome.error or wording.UNKNOWN,
    }[outcome.state]


def say_tensors_refused(outcome: Tensors) -> str:
    return {
        "busy": _("busy: {reason}").format(reason=say_why_busy(outcome.reason, outcome.where)),
        "gone": _("the process has ended"),
        "ended": _("the process has ended"),
        "silent": _("no answer"),
    }.get(outcome.state, _("failed: {error}").format(error=outcome.error or wording.UNKNOWN))


def _busy(outcome: Freed) -> str:
    """Says also what was freed: some memory, such as free blocks of malloc, may be freed while the
    process is busy."""
    words = _("busy: {reason}").format(reason=say_why_busy(outcome.reason, outcome.where))
    if outcome.seconds:
        words += _("; tried for {time}").format(time=wording.duration(outcome.seconds))
    if outcome.freed:
        return words + _("; freed only {size}").format(size=wording.size(outcome.freed))
    return words + _("; nothing was freed")


def _waiting(outcome: Freed) -> str:
    words = _("busy: {reason}; it will be freed when possible, within {time}")
    return words.format(
        reason=say_why_busy(outcome.reason, outcome.where), time=wording.duration(outcome.waits)
    )


def _freed_done(outcome: Freed) -> str:
    words = say_freed_briefly(outcome)
    if outcome.trimmed:
        words += _("; the process trimmed its cache itself, at its next allocation")
    if outcome.age is not None:
        words += _("; that was {time} ago: freeing more often would slow the process down").format(
            time=wording.duration(outcome.age)
        )
    if outcome.not_known:
        names = ", ".join(outcome.not_known)
        words += _("; {names} skipped: can't tell whether the process uses it").format(names=names)
    if outcome.pinned:
        words += _("; {size} can't be returned yet: live tensors share those blocks").format(
            size=wording.size(outcome.pinned)
        )
    if outcome.collected is False and outcome.gui_toolkit:
        words += _("; gc.collect() skipped: it can crash a program that uses {toolkit}").format(
            toolkit=outcome.gui_toolkit
        )
    elif outcome.collected is False and outcome.main_was_waiting:
        words += _("; gc.collect() skipped: the main thread was waiting")
    elif outcome.collected is False:
        words += _("; gc.collect() skipped: the main thread couldn't be reached")
    return words


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
    elif isinstance(process, Worker) and process.pending_free:
        yield _("will be freed when possible")
    elif pid in snapshot.freed:
        yield say_freed_briefly(snapshot.freed[pid])
    if any(isinstance(action, Limit) and action.pid == pid for action in snapshot.pending):
        yield _("setting its limit…")
    elif pid in snapshot.limited:
        yield say_limited_briefly(snapshot.limited[pid])
    if snapshot.auto_free.get(pid, AutoFreeStatus()).is_left_alone and pid not in snapshot.freed:
        yield _("automatic freeing paused")
    if pid in snapshot.stopped:
        yield say_stopped(snapshot.stopped[pid])


def say_reset(pid: int, snapshot: Snapshot) -> str:
    """Says, until the process ends, that the GPU was reset: results since then may be wrong."""
    reset = snapshot.gpu_resets.get(pid)
    if reset is None:
        return ""
    return _("GPU reset at {time}; results may be wrong").format(time=wording.clock(reset))
