"""What one process has loaded and who it is: on the reading thread, since any of it may hang."""

from dataclasses import dataclass, replace

from mpsbar.agent.frameworks import FRAMEWORKS
from mpsbar.core.machine import Process
from mpsbar.core.naming import name_process, printable
from mpsbar.system.interpreter import find_python
from mpsbar.system.platform import MAX_VALUE, Computer

# A process of the same size as before has loaded nothing since, nor become another program by
# exec; every so often that is not believed.
_BELIEVED = 10


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found; as large as the process was when that was found out again."""

    process: Process | None  # None: it has no framework loaded
    size: int | None = None
    times: int = 1  # that it was found out or believed since


def examine(computer: Computer, pid: int, before: Answer | None) -> Answer:
    # Not at the first time: the first look at hundreds of processes should be quick.
    size = None if before is None else computer.read_size(pid)
    is_same = before is not None and size is not None and size == before.size
    if before is not None and is_same and before.times < _BELIEVED:
        return Answer(_weigh(computer, before.process), size, before.times + 1)
    libraries = computer.read_libraries(pid)
    return Answer(describe(computer, pid, libraries) if libraries else None, size)


def _weigh(computer: Computer, process: Process | None) -> Process | None:
    """The same with its present footprint and the true peak."""
    if process is None:
        return None
    footprint = computer.read_footprint(process.pid)
    return replace(process, footprint=footprint.now, footprint_peak=footprint.peak)


def describe(computer: Computer, pid: int, libraries: dict[str, str]) -> Process:
    details = computer.read_details(pid)
    footprint = computer.read_footprint(pid)
    python, environment = find_python(details, next(iter(libraries.values())))
    if python is not None and not python.isprintable():
        python, environment = None, None  # no path that could be typed; it might harm a terminal
    variables = details.variables
    return Process(
        pid=pid,
        started=details.started,
        name=printable(name_process(details.command, None, variables, details.executable)),
        frameworks=tuple(one.name for one in FRAMEWORKS if one.name in libraries),
        parent=details.parent,
        command=details.command,
        executable=details.executable and printable(details.executable, MAX_VALUE),
        python=python,
        environment=environment,
        settings={k: v for k, v in variables.items() if k.startswith("PYTORCH_")},
        footprint=footprint.now,
        footprint_peak=footprint.peak,
        footprint_kind=computer.footprint_kind,
    )
