"""Sizes, times, percentages and the words that several views share. Pure."""

import shlex
from collections.abc import Sequence
from datetime import datetime

from mpsbar.agent.frameworks import FRAMEWORKS, LIMITABLE, join_labels
from mpsbar.agent.secrets import shorten_home
from mpsbar.agent.wording import UNKNOWN, duration, size
from mpsbar.core.machine import Process
from mpsbar.core.naming import Kind, kind_of
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.language import _, ngettext


def how_to_connect(python: str, kind: Kind) -> str:
    """What to type to connect a process; it takes effect when the process is restarted."""
    python = shlex.quote(python)
    enable = f"mpsbar enable --python {python}"
    text = {
        "script": _("{command}, then restart it (or for one run: mpsbar run {python} …)"),
        "notebook": _("{command} && mpsbar enable --jupyter, then restart the kernel"),
        "server": _("{command}, then restart the server"),
    }[kind]
    return text.format(command=enable, python=python)


def explain_limit(worker: Worker, briefly: bool = False) -> list[str]:
    """What a limit means for each allocator that it uses and that can keep one."""
    names = {backend.name for backend in worker.in_use}
    texts = []
    for allocator in LIMITABLE:
        if allocator.name in names:
            more = "" if briefly else allocator.while_running
            texts.append(" ".join(map(_, filter(None, (allocator.above_limit, more)))))
    return texts


# For the other modules too, which import all shared words from here.
__all__ = ["UNKNOWN", "duration", "shorten_home", "size"]
_BARS = "▁▂▃▄▅▆▇█"


def clock(time: float | None, seconds: bool = False) -> str:
    """Returns a local time, such as 14:02 or 14:02:30; one that no clock shows is unknown."""
    if time is None:
        return UNKNOWN
    try:
        moment = datetime.fromtimestamp(time).astimezone()
        return moment.strftime("%H:%M:%S" if seconds else "%H:%M")
    except (ValueError, OverflowError, OSError):
        return UNKNOWN


def ago(then: float, now: float) -> str:
    """Returns how long ago, such as 3 min ago; "just now" also when the clock was set back."""
    seconds = max(0.0, now - then)
    if seconds < 10:
        return _("just now")
    return _("{time} ago").format(time=duration(seconds))


def cached(worker: Worker) -> str:
    if worker.cached is None:
        return ""
    bound = "≤ " if worker.cached_is_bound else ""
    return _("cached {bound}{size}").format(bound=bound, size=size(worker.cached))


def limit(worker: Worker) -> str:
    return "" if worker.limit is None else _("limit {size}").format(size=size(worker.limit))


def device(worker: Worker) -> str:
    """The devices that the worker uses, as far as they are known."""
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
        return _("{frameworks} not loaded yet").format(frameworks=join_labels(_("or")))
    if any(backend.state == "not known" for backend in worker.backends) and not worker.held:
        return _("GPU memory unknown")
    return ""


def sparkline(values: Sequence[int]) -> str:
    """Percentages from 0 to 100 as a row of little bars, the newest last."""
    if len(values) < 2:
        return ""
    return "".join(_BARS[min(max(value, 0), 99) * len(_BARS) // 100] for value in values)


def interval(seconds: float) -> str:
    """Returns an interval for a menu, such as Every 2 Seconds."""
    if seconds == 1:
        return _("Every Second")
    return _("Every {n} Seconds").format(n=f"{seconds:g}")


def percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0f}%"


def part(used: int | None, whole: int | None) -> str:
    """Returns both sizes, such as 9.8 of 27.0 GB: the unit once if it is the same."""
    some, total = size(used), size(whole)
    if some.split(" ")[1:] == total.split(" ")[1:]:
        some = some.split(" ")[0]
    return _("{used} of {whole}").format(used=some, whole=total)


def found(snapshot: Snapshot, with_commands: bool = True) -> str:
    """Says why there are no connected workers to show; empty if there are any."""
    why = (
        _("run mpsbar doctor to see why")
        if with_commands
        else _("choose Copy Diagnostics for details")
    )
    if snapshot.processes is None:
        return _("Couldn't list processes ({why})").format(why=why)
    if any(problem.reader == "workers" for problem in snapshot.problems):
        return _("Couldn't reach connected processes ({why})").format(why=why)
    if snapshot.workers:
        return ""
    count = len(snapshot.processes)
    if not count:
        return f"{nothing_runs()} {how_to_start()}" if with_commands else nothing_runs()
    loaded = {name for process in snapshot.processes for name in process.frameworks}
    kind = _(" or ").join(framework.label for framework in FRAMEWORKS if framework.name in loaded)
    text = ngettext(
        "{n} {kind} process, not connected", "{n} {kind} processes, not connected", count
    )
    return text.format(n=count, kind=kind)


def found_pythons(count: int) -> str:
    """The title of a submenu that lists the Pythons found."""
    if count:
        return _("Connect a Python ({n} Found)").format(n=count)
    return _("Connect a Python with {frameworks}").format(frameworks=join_labels(_("or")))


def nothing_runs() -> str:
    return _("You have no {frameworks} processes running.").format(frameworks=join_labels(_("or")))


def how_to_start() -> str:
    return _("To start one: mpsbar run python train.py")


def children(count: int) -> str:
    return ngettext("{n} child process", "{n} child processes", count).format(n=count)


def charged_together(processes: tuple[Process, ...]) -> str:
    """An upper bound: pages that forked children share with their parent count in each of them."""
    sizes = [process.footprint for process in processes]
    known = [number for number in sizes if number is not None]
    return f"≤ {size(sum(known))}" if len(known) == len(sizes) else UNKNOWN


def how_to_connect_process(process: Process) -> str:
    """What to do to see more of an unconnected process."""
    if process.python is None:
        return _("add `import mpsbar; mpsbar.attach()` to its code, if it is Python")
    if process.is_enabled:
        return _say_enabled(process)
    return how_to_connect(process.python, kind_of(process.name))


def _say_enabled(process: Process) -> str:
    """Says that nothing has to be typed: its environment is enabled, or `mpsbar run` started it."""
    if process.is_starting:
        return _("nothing to do: it connects automatically once it has finished importing")
    return _("restart it: its environment is enabled (if that does not help: mpsbar doctor)")


def how_to_connect_in_menu(process: Process) -> str:
    """The same for a person who has only the app."""
    if process.python is None:
        return _("add `import mpsbar; mpsbar.attach()` to its code, if it is Python")
    if process.is_starting:
        return _say_enabled(process)
    if process.is_enabled:
        return _("Restart it: its environment is connected")
    return _("Choose Connect This Environment, then restart it")


def unconnected(process: Process) -> str:
    """Why nothing can be done with it, and what would help."""
    if process.is_starting:
        return _("starting: {how}").format(how=_say_enabled(process))
    return _("not connected: {how}").format(how=how_to_connect_process(process))


def without_framework() -> str:
    return _("not connected, and neither {frameworks} was found in it").format(
        frameworks=join_labels(_("nor"))
    )


def of_another_user(name: str | None) -> str:
    if name is None:
        return _("it belongs to another user, and only that user can connect to it")
    return _("it belongs to {name}, and only that user can connect to it").format(name=name)


def no_such_process() -> str:
    return _("no process has this PID (run mpsbar status to list them)")


def no_such_name(name: str, names: list[str]) -> str:
    if not names:
        return _("no process is connected, so there is none named {name}").format(name=name)
    return _("no connected process is named {name}; connected: {names}").format(
        name=name, names=", ".join(names)
    )


def not_connected(process: Process) -> str:
    if process.is_starting:
        return _("starting ({frameworks})").format(frameworks="+".join(process.frameworks))
    return _("not connected ({frameworks})").format(frameworks="+".join(process.frameworks))


def problems(count: int) -> str:
    text = ngettext(
        "{n} value couldn't be read: run mpsbar doctor to see why",
        "{n} values couldn't be read: run mpsbar doctor to see why",
        count,
    )
    return text.format(n=count)


def how_to_free_later(pids: list[str]) -> str:
    return _("To free at the first safe moment: mpsbar free --when-possible {pids}").format(
        pids=" ".join(pids)
    )


def workers_connected(count: int) -> str:
    if not count:
        return _("No processes connected")
    return ngettext("{n} process connected", "{n} processes connected", count).format(n=count)
