"""Renders the block to paste into a bug report: versions, this computer, torch in each Python."""

import platform
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath

from mpsbar import __version__
from mpsbar.agent.secrets import mask
from mpsbar.core.machine import Process
from mpsbar.core.naming import printable
from mpsbar.core.snapshot import Snapshot
from mpsbar.doctor.render import render_doctor
from mpsbar.doctor.rules import DoctorReport
from mpsbar.language import _
from mpsbar.ui.status_table import render_table
from mpsbar.ui.text import wording
from mpsbar.ui.text.alerts import say_health
from mpsbar.ui.text.endings import describe_end
from mpsbar.ui.text.machine import describe_gpu, describe_machine


def render_diagnostics(
    version: str,
    snapshot: Snapshot,
    doctor_report: DoctorReport | None,
    home: str,
    dtypes: str = "",
) -> str:
    """Renders the block, without arguments and paths of processes; `home` is shown as ~.

    `dtypes` is the result of the last probe in words.
    """
    snapshot = without_private(snapshot)
    parts = [f"mpsbar {version}"]
    parts.append(_render_memory(snapshot))
    if snapshot.families:
        parts.append(render_table(snapshot))
    if snapshot.ended:
        parts.append("\n".join(_render_ended(snapshot)))
    if dtypes:
        parts.append(dtypes)
    # At the end, because its last line says whether there is a problem.
    if doctor_report is not None:
        parts.append(render_doctor(doctor_report))
    return wording.shorten_home("\n\n".join(parts), home) + "\n"


def without_private(snapshot: Snapshot) -> Snapshot:
    """The snapshot with bare names: a process may put all of its arguments into its title."""
    processes = snapshot.processes
    return replace(
        snapshot,
        workers=tuple(replace(worker, name=bare_name(worker.name)) for worker in snapshot.workers),
        processes=processes and tuple(replace(p, name=bare_name(p.name)) for p in processes),
        ended=tuple(replace(end, name=bare_name(end.name)) for end in snapshot.ended),
    )


def bare_name(name: str) -> str:
    """Shortens "/data/jane/serve --key=1" to "serve"; keeps "torchrun train.py"."""
    words = [PurePath(word).name if "/" in word else word for word in name.split(" ")]
    for number, word in enumerate(words):
        is_module = word == "-m"  # of a name that mpsbar gave
        if number and ("=" in word or (word.startswith("-") and not is_module)):
            return mask(" ".join(words[:number]))
    return mask(" ".join(words)) if words[0] else mask(name)


def _render_memory(snapshot: Snapshot) -> str:
    lines = [describe_machine(snapshot.machine), describe_gpu(snapshot.machine.gpu)]
    lines.append(say_health(snapshot.health, snapshot.names))
    lines += [line for process in snapshot.processes or () for line in _settings(process)]
    return "\n".join(line for line in lines if line)


def _settings(process: Process) -> list[str]:
    """Lists the variables of torch in the environment of the process."""
    title = f"{process.name} ({process.pid})"
    settings = process.settings.items()
    return [f"{title}: {name}={printable(value, 200)}" for name, value in settings]


def _render_ended(snapshot: Snapshot) -> list[str]:
    return [
        _("{name} ({pid}) {words}").format(
            name=end.name, pid=end.pid, words=describe_end(end, snapshot.time)
        )
        for end in snapshot.ended
    ]


_PACKAGES = ("rumps", "pyobjc-core", "textual")


def read_versions() -> str:
    """Returns versions, such as "0.1.0 · Python 3.11.7 · rumps 0.4.0"."""
    words = [__version__, f"Python {platform.python_version()}"]
    for name in _PACKAGES:
        try:
            words.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return " · ".join(words)
