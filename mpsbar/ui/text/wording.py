"""Every word a person reads, made here from data and passed through one `_()`. Pure."""

import gettext
import re
import shlex
from collections.abc import Sequence

from mpsbar.agent.frameworks import FRAMEWORKS, join_labels
from mpsbar.core.events import EndedProcess
from mpsbar.core.machine import Gpu, Machine, Process
from mpsbar.core.naming import Kind, kind_of
from mpsbar.core.snapshot import Snapshot, Worker

_ = gettext.translation("mpsbar", fallback=True).gettext


def how_to_connect(python: str, kind: Kind) -> str:
    """The text for one interpreter and kind of process; nothing reaches a running one."""
    python = shlex.quote(python)
    enable = f"mpsbar enable --python {python}"
    return {
        "script": f"{enable}, then start it again (or once: mpsbar run {python} …)",
        "notebook": f"{enable} && mpsbar enable --jupyter, then restart the kernel",
        "server": f"{enable}, then restart the server",
    }[kind]


UNKNOWN = "?"
_BARS = "▁▂▃▄▅▆▇█"
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


def ago(then: float, now: float) -> str:
    """3 min ago; a clock that was set back makes it just now."""
    seconds = max(0.0, now - then)
    if seconds < 10:
        return _("just now")
    return _("{time} ago").format(time=duration(seconds))


def ended(one: EndedProcess, now: float) -> str:
    """ended 3 min ago, peak 11.2 GB, exit code not known."""
    words = _("ended {ago}") if one.was_seen else _("last seen {ago}, ended while nobody looked")
    parts = [words.format(ago=ago(one.ended, now))]
    if one.peak is not None:
        parts.append(_("peak {size}").format(size=size(one.peak)))
    return ", ".join([*parts, way(one.how)])


def way(how: str | None) -> str:
    """How it ended, as far as it can be known from outside."""
    return {
        "stopped": _("stopped by mpsbar"),
        "pressure": _("exit code not known, memory pressure was critical"),
        "unseen": _("ended while nobody looked"),
    }.get(how or "", _("exit code not known"))


def shorten(name: str, width: int) -> str:
    """A long name, cut in the middle: both its beginning and its end tell it apart."""
    if len(name) <= width:
        return name
    left = width // 2
    return name[:left] + "…" + name[len(name) - (width - 1 - left) :]


def shorten_home(text: str, home: str | None) -> str:
    """The home folder as ~ wherever a path begins with it, not in the middle of another path."""
    folder = (home or "").rstrip("/")
    if not folder:
        return text
    return re.sub(rf"(?<![\w/.~@+%-]){re.escape(folder)}(?!\.?[\w@+%~-])", "~", text)


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
        return _("no {frameworks} loaded yet").format(frameworks=join_labels(_("or")))
    if any(backend.state == "not known" for backend in worker.backends) and not worker.held:
        return _("GPU memory not known")
    return ""


def course(values: Sequence[int]) -> str:
    """The last looks as a row of little bars: percent, 0 to 100."""
    if len(values) < 2:
        return ""
    return "".join(_BARS[min(max(value, 0), 99) * len(_BARS) // 100] for value in values)


def seconds(count: float) -> str:
    """Of an interval: 2 s, 0.5 s."""
    return f"{count:g} s"


def percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0f} %"


def _pressure(level: str | None) -> str:
    levels = {"normal": _("normal"), "warning": _("warning"), "critical": _("critical")}
    return _("pressure {level}").format(level=levels.get(level or "", UNKNOWN))


def machine(told: Machine) -> str:
    """One line: Apple M3 Max · 36.0 GB · pressure normal · 12.1 GB available."""
    words = [machine_briefly(told)]
    if told.memory_available is not None:
        words.append(_("{size} available").format(size=size(told.memory_available)))
    if told.swap_used:
        words.append(_("{size} swapped").format(size=size(told.swap_used)))
    return " · ".join(words)


def machine_briefly(told: Machine) -> str:
    """For a menu: Apple M3 Max · 36.0 GB · pressure normal."""
    words = [told.chip or told.model or told.os or _("this computer"), size(told.memory_total)]
    words.append(_pressure(told.pressure))
    if told.recording is not None:
        words.append(_("RECORDED"))
    return " · ".join(words)


def gpu(told: Gpu) -> str:
    """One line, or none where nothing can be read of a GPU."""
    if told.utilization is None and told.memory_in_use is None:
        return ""
    words = [_("GPU {percent}").format(percent=percent(told.utilization))]
    if told.memory_budget is None:
        words.append(_("{size} in use").format(size=size(told.memory_in_use)))
    else:
        words.append(part(told.memory_in_use, told.memory_budget))
    return " · ".join(words)


def part(used: int | None, whole: int | None) -> str:
    """9.8 of 27.0 GB; the unit once if it is the same."""
    some, total = size(used), size(whole)
    if some.split(" ")[1:] == total.split(" ")[1:]:
        some = some.split(" ")[0]
    return _("{used} of {whole}").format(used=some, whole=total)


def found(snapshot: Snapshot) -> str:
    """Whether there is anything to see, where the rows do not tell."""
    if snapshot.processes is None:
        return _("Processes could not be looked for (mpsbar doctor tells why)")
    if any(problem.reader == "workers" for problem in snapshot.problems):
        return _("Connected processes could not be asked (mpsbar doctor tells why)")
    if snapshot.workers:
        return ""
    number = len(snapshot.processes)
    if not number:
        return _(
            "No {frameworks} process of yours is running. To see one: mpsbar run python train.py"
        ).format(frameworks=join_labels(_("or")))
    has = {name for process in snapshot.processes for name in process.frameworks}
    kind = _(" or ").join(one.label for one in FRAMEWORKS if one.name in has)
    if number == 1:
        return _("1 {kind} process, not connected").format(kind=kind)
    return _("{n} {kind} processes, not connected").format(n=number, kind=kind)


def children(number: int) -> str:
    return _("{n} child processes").format(n=number)


def charged_together(processes: tuple[Process, ...]) -> str:
    """At most: forked children share pages with their parent, which are counted in each."""
    sizes = [process.footprint for process in processes]
    known = [number for number in sizes if number is not None]
    return f"≤ {size(sum(known))}" if len(known) == len(sizes) else UNKNOWN


def way_to_connect(process: Process) -> str:
    """What to do to see more of an unconnected process."""
    if process.python is None:
        return _("add `import mpsbar; mpsbar.attach()` to its code, if that is Python")
    return how_to_connect(process.python, kind_of(process.name))


def not_connected(process: Process) -> str:
    return _("not connected ({frameworks})").format(frameworks="+".join(process.frameworks))


def problems(number: int) -> str:
    if number == 1:
        return _("1 thing could not be read: mpsbar doctor tells why")
    return _("{n} things could not be read: mpsbar doctor tells why").format(n=number)


def workers_connected(number: int) -> str:
    if not number:
        return _("No PyTorch process is connected")
    return _("1 worker connected") if number == 1 else _("{n} workers connected").format(n=number)
