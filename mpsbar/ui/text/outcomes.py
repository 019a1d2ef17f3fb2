"""How actions ended, in words. Pure."""

from mpsbar.core.actions import Connected, Freed, Stopped, Tensors
from mpsbar.ui.text import wording
from mpsbar.ui.text.wording import _


def reason(outcome: Freed | Tensors) -> str:
    words = {
        "thread_computing": _("another thread is computing"),
        "thread_unproven": _("another thread couldn't be shown to be waiting"),
        "main_computing": _("the main thread is computing"),
        "main_unproven": _("the main thread couldn't be shown to be waiting"),
        "main_waiting": _("the main thread is waiting and couldn't be reached"),
        "switch_interval": _("its thread switch interval is unusually long"),
        "slow": _("the machine was too busy"),
        "free_threaded": _("it runs without the GIL"),
        "forked": _("the process was forked meanwhile"),
        "deep_recursion": _("its call stack is too deep"),
        "interrupted": _("it was interrupted"),
    }.get(outcome.reason or "", _("no safe moment was found"))
    return f"{words} ({outcome.where})" if outcome.where else words


def freed(outcome: Freed) -> str:
    """One sentence on how a Free ended."""
    if outcome.state == "done":
        return _freed_done(outcome)
    return {
        "busy": _busy(outcome),
        "waiting": _waiting(outcome),
        "cancelled": _("it won't be freed when possible any more"),
        "gone": _("no connected process has this PID (run mpsbar status to list them)"),
        "ended": _("the process ended meanwhile"),
        "silent": _("no answer within {time}; the cache may still be freed later").format(
            time=wording.duration(outcome.seconds)
        ),
        "refused": _("couldn't connect: {error}").format(error=outcome.error),
        "failed": _("failed: {error}").format(error=outcome.error or wording.UNKNOWN),
    }[outcome.state]


def freed_briefly(outcome: Freed) -> str:
    """For a row, which shows anyway what is still cached."""
    if outcome.state in ("gone", "ended"):
        return _("the process has ended")
    if outcome.state != "done":
        return freed(outcome)
    words = _("freed {size} in {time}").format(
        size=wording.size(outcome.freed), time=wording.duration(outcome.seconds)
    )
    return words + _(", when it was possible") if outcome.when_possible else words


def stopped(outcome: Stopped) -> str:
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


def connected(outcome: Connected) -> str:
    """One sentence on how connecting an environment ended."""
    later = _("Restart the process for this to take effect.")
    return {
        "enabled": _("The agent answered. {later}").format(later=later),
        "enabled_before": _("It was already connected. {later}").format(later=later),
        "no_answer": _("The files are in place, but the agent didn't answer a test call."),
        "refused": outcome.error or wording.UNKNOWN,
    }[outcome.state]


def tensors_refused(outcome: Tensors) -> str:
    return {
        "busy": _("busy: {reason}").format(reason=reason(outcome)),
        "gone": _("the process has ended"),
        "ended": _("the process has ended"),
        "silent": _("no answer"),
    }.get(outcome.state, _("failed: {error}").format(error=outcome.error or wording.UNKNOWN))


def _busy(outcome: Freed) -> str:
    """What any thread may free, such as free blocks of malloc, is freed beside a busy one too."""
    words = _("busy: {reason}").format(reason=reason(outcome))
    if outcome.seconds:
        words += _("; tried for {time}").format(time=wording.duration(outcome.seconds))
    if outcome.freed:
        return words + _("; freed only {size}").format(size=wording.size(outcome.freed))
    return words + _("; nothing was freed")


def _waiting(outcome: Freed) -> str:
    words = _("busy: {reason}; it will be freed when possible, within {time}")
    return words.format(reason=reason(outcome), time=wording.duration(outcome.waits))


def _freed_done(outcome: Freed) -> str:
    words = freed_briefly(outcome)
    if outcome.trimmed:
        words += _("; MLX trimmed its cache at its next allocation")
    if outcome.age is not None:
        words += _("; that was {time} ago, freeing more often would slow it down").format(
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
    elif outcome.collected is False:
        words += _("; gc.collect() skipped: the main thread couldn't be reached")
    return words
