"""A block to paste into a bug report: versions, this computer, torch in each Python."""

import platform
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath

from mpsbar import __version__
from mpsbar.core.machine import Process
from mpsbar.core.naming import printable
from mpsbar.core.snapshot import Snapshot
from mpsbar.doctor.checkup import Checkup
from mpsbar.doctor.render import render_doctor
from mpsbar.ui.text import wording
from mpsbar.ui.text.findings import say_health
from mpsbar.ui.text.status import render_table
from mpsbar.ui.text.wording import _


def render_diagnostics(
    version: str, snapshot: Snapshot, checkup: Checkup | None, home: str, dtypes: str = ""
) -> str:
    """Names of processes, but neither their arguments nor their paths; `home` as ~.

    `dtypes` is what the last probe found, in words.
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
    if checkup is not None:  # last: its last line sums up the problems
        parts.append(render_doctor(checkup))
    return wording.shorten_home("\n\n".join(parts), home) + "\n"


def without_private(snapshot: Snapshot) -> Snapshot:
    """A process may call itself what it likes, with all of its arguments."""
    workers = tuple(replace(one, name=bare_name(one.name)) for one in snapshot.workers)
    found = snapshot.processes
    processes = None if found is None else tuple(
        replace(one, name=bare_name(one.name)) for one in found
    )  # fmt: skip
    ended = tuple(replace(one, name=bare_name(one.name)) for one in snapshot.ended)
    return replace(snapshot, workers=workers, processes=processes, ended=ended)


def bare_name(name: str) -> str:
    """torchrun train.py stays; of /data/jane/serve --key=1 only serve does."""
    words = [PurePath(word).name if "/" in word else word for word in name.split(" ")]
    first, *others = words or [""]
    plain = [word for word in others if "=" not in word and not word.startswith("--")]
    return " ".join([first, *plain]) if first else name


def _render_memory(snapshot: Snapshot) -> str:
    lines = [wording.machine(snapshot.machine), wording.gpu(snapshot.machine.gpu)]
    lines.append(say_health(snapshot.health, snapshot.names))
    lines += [line for process in snapshot.processes or () for line in _settings(process)]
    return "\n".join(line for line in lines if line)


def _settings(process: Process) -> list[str]:
    """What it was started with, of torch's own variables."""
    title = f"{process.name} ({process.pid})"
    settings = process.settings.items()
    return [f"{title}: {name}={printable(value, 200)}" for name, value in settings]


def _render_ended(snapshot: Snapshot) -> list[str]:
    return [
        _("{name} ({pid}) {words}").format(
            name=one.name, pid=one.pid, words=wording.ended(one, snapshot.time)
        )
        for one in snapshot.ended
    ]


_PARTS = ("rumps", "pyobjc-core", "textual")


def read_versions() -> str:
    """0.1.0 · Python 3.11.7 · rumps 0.4.0"""
    words = [__version__, f"Python {platform.python_version()}"]
    for name in _PARTS:
        try:
            words.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return " · ".join(words)
