"""How what was asked ended, in words. Pure."""

from mpsbar.core.actions import Connected, Freed, Stopped, Tensors
from mpsbar.ui.text import wording
from mpsbar.ui.text.wording import _


def reason(outcome: Freed | Tensors) -> str:
    words = {
        "thread_computing": _("another thread is computing"),
        "main_computing": _("the main thread is computing"),
        "main_waiting": _("the main thread is waiting and could not be reached"),
        "switch_interval": _("its thread switch interval is unusually long"),
        "slow": _("the machine was too busy"),
        "deep_recursion": _("its calls are nested too deeply"),
        "interrupted": _("it was interrupted meanwhile"),
    }.get(outcome.reason or "", _("no moment was found at which it is safe"))
    return f"{words} ({outcome.where})" if outcome.where else words


def freed(outcome: Freed) -> str:
    """One sentence on how a Free ended."""
    if outcome.state == "done":
        return _freed_done(outcome)
    return {
        "busy": _("busy: {reason}; not freed, try again").format(reason=reason(outcome)),
        "gone": _("no connected worker with this pid (mpsbar status lists them)"),
        "silent": _("no answer within {time}; it may still free later").format(
            time=wording.duration(outcome.seconds)
        ),
        "refused": _("could not connect: {error}").format(error=outcome.error),
        "failed": _("failed: {error}").format(error=outcome.error or wording.UNKNOWN),
    }[outcome.state]


def freed_briefly(outcome: Freed) -> str:
    """For a row that shows what is still cached anyway."""
    if outcome.state == "gone":
        return _("it has ended")
    if outcome.state != "done":
        return freed(outcome)
    return _("freed {size} in {time}").format(
        size=wording.size(outcome.freed), time=wording.duration(outcome.seconds)
    )


def stopped(outcome: Stopped) -> str:
    """What became of asking a process to end."""
    return {
        "asked": _("told to end (SIGTERM)") if outcome.firmly else _("asked to stop (SIGINT)"),
        "gone": _("has ended already"),
        "another": _("its pid is another process now: nothing was sent"),
        "not_allowed": _("you may not stop it"),
        "failed": _("could not be stopped: {error}").format(error=outcome.error or wording.UNKNOWN),
    }[outcome.state]


def connected(outcome: Connected) -> str:
    """One sentence on how connecting an environment ended."""
    later = _("It takes effect when the process is started again.")
    return {
        "enabled": _("Its agent answered. {later}").format(later=later),
        "enabled_before": _("It was connected already. {later}").format(later=later),
        "no_answer": _("The files are in place, but its agent did not answer a first call."),
        "refused": outcome.error or wording.UNKNOWN,
    }[outcome.state]


def tensors_refused(outcome: Tensors) -> str:
    return {
        "busy": _("busy: {reason}").format(reason=reason(outcome)),
        "gone": _("it has ended"),
        "silent": _("no answer"),
    }.get(outcome.state, _("failed: {error}").format(error=outcome.error or wording.UNKNOWN))


def _freed_done(outcome: Freed) -> str:
    words = freed_briefly(outcome)
    if outcome.age is not None:
        words += _("; that was {time} ago, freeing more often would slow it down").format(
            time=wording.duration(outcome.age)
        )
    if outcome.not_known:
        names = ", ".join(outcome.not_known)
        words += _("; whether it uses {names} is not known, so nothing of that").format(names=names)
    if outcome.pinned:
        words += _("; {size} still pinned by live tensors").format(
            size=wording.size(outcome.pinned)
        )
    if outcome.collected is False and outcome.gui_toolkit:
        words += _("; without gc.collect(), which can crash a program that uses {toolkit}").format(
            toolkit=outcome.gui_toolkit
        )
    elif outcome.collected is False:
        words += _("; without gc.collect(), its main thread could not be reached")
    return words
