"""Every word a person reads, made here from data and passed through one `_()`. Pure."""

from gettext import gettext as _

from mpsbar.model.action import Freed
from mpsbar.model.snapshot import Worker

UNKNOWN = "?"
_UNITS = ("B", "kB", "MB", "GB", "TB")


def size(count: int | None) -> str:
    """Bytes as Activity Monitor words them: 1024 to the next unit, three figures at most."""
    if count is None:
        return UNKNOWN
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    digits = 1 if unit >= 2 and value < 99.95 else 0
    return f"{value:.{digits}f} {_UNITS[unit]}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    if seconds < 7170:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"


def shorten(name: str, width: int) -> str:
    """A long name, cut in the middle: both its beginning and its end tell it apart."""
    if len(name) <= width:
        return name
    left = width // 2
    return name[:left] + "…" + name[len(name) - (width - 1 - left) :]


def cached(worker: Worker) -> str:
    if worker.cached is None:
        return ""
    bound = "≤ " if worker.cached_is_bound else ""
    return _("cached {bound}{size}").format(bound=bound, size=size(worker.cached))


def device(worker: Worker) -> str:
    """What the worker computes on, as far as it is known."""
    names = [backend.name for backend in worker.in_use]
    if len(names) > 1 and "cpu" in names:
        names.remove("cpu")  # every torch has it; worth a word only when it is all there is
    return "+".join(names) or "–"


def state(worker: Worker) -> str:
    if worker.state == "busy":
        if worker.age is None:
            return _("no answer yet")
        return _("busy {age}").format(age=duration(worker.age))
    if worker.state == "gone":
        return _("ended")
    if not worker.backends:
        return _("no torch or MLX loaded yet")
    if any(backend.state == "not known" for backend in worker.backends) and not worker.held:
        return _("GPU memory not known")
    return ""


_REASONS = {
    "thread_computing": _("another thread is computing"),
    "main_computing": _("the main thread is computing"),
    "switch_interval": _("its thread switch interval is unusually long"),
    "slow": _("the machine was too busy"),
    "interrupted": _("it was interrupted meanwhile"),
}


def reason(outcome: Freed) -> str:
    words = _REASONS.get(outcome.reason or "", _("no moment was found at which it is safe"))
    return f"{words} ({outcome.where})" if outcome.where else words


def freed(outcome: Freed) -> str:
    """One sentence on how a Free ended."""
    if outcome.state == "done":
        return _freed_done(outcome)
    return {
        "busy": _("busy: {reason}; not freed, try again").format(reason=reason(outcome)),
        "gone": _("no connected worker with this pid (mpsbar status lists them)"),
        "silent": _("no answer within {time}; it may still free later").format(
            time=duration(outcome.seconds)
        ),
        "refused": _("could not connect: {error}").format(error=outcome.error),
        "failed": _("failed: {error}").format(error=outcome.error or UNKNOWN),
    }[outcome.state]


def freed_briefly(outcome: Freed) -> str:
    """For a row that shows what is still cached anyway."""
    if outcome.state != "done":
        return freed(outcome)
    return _("freed {size} in {time}").format(
        size=size(outcome.freed), time=duration(outcome.seconds)
    )


def _freed_done(outcome: Freed) -> str:
    words = freed_briefly(outcome)
    if outcome.pinned:
        words += _("; {size} still pinned by live tensors").format(size=size(outcome.pinned))
    return words


def workers_connected(number: int) -> str:
    if not number:
        return _("No PyTorch process is connected")
    return _("1 worker connected") if number == 1 else _("{n} workers connected").format(n=number)
