"""A block to paste into a bug report: versions, this computer, torch in each Python. Pure."""

import re
from dataclasses import replace
from pathlib import PurePath

from mpsbar.model.checkup import Checkup
from mpsbar.model.dtypes import Probe
from mpsbar.model.machine import Process
from mpsbar.model.snapshot import Snapshot
from mpsbar.model.text import printable
from mpsbar.views import wording
from mpsbar.views.doctor import render_doctor
from mpsbar.views.language import _
from mpsbar.views.probe import build_rows, say_headline
from mpsbar.views.reasons import say_health
from mpsbar.views.status import render_table


def render_diagnostics(
    version: str, snapshot: Snapshot, checkup: Checkup | None, home: str, probe: Probe | None = None
) -> str:
    """Names of processes, but neither their arguments nor their paths; `home` as ~."""
    snapshot = without_private(snapshot)
    parts = [f"mpsbar {version}"]
    parts.append(_render_memory(snapshot))
    if snapshot.families:
        parts.append(render_table(snapshot))
    if snapshot.gone:
        parts.append("\n".join(_render_gone(snapshot)))
    if probe is not None:
        parts.append(_render_dtypes(probe))
    if checkup is not None:  # last: its last line says whether there is a problem
        parts.append(render_doctor(checkup, home))
    return shorten_home("\n\n".join(parts), home) + "\n"


def shorten_home(text: str, home: str) -> str:
    """Where a path begins with it, not in the middle of another's."""
    folder = home.rstrip("/")
    if not folder:
        return text
    return re.sub(rf"(?<![^\s:=('\"`]){re.escape(folder)}(?=[/\s'\"`:,)]|$)", "~", text)


def without_private(snapshot: Snapshot) -> Snapshot:
    """A process may call itself what it likes, with all of its arguments."""
    workers = tuple(replace(one, name=bare_name(one.name)) for one in snapshot.workers)
    found = snapshot.processes
    processes = None if found is None else tuple(
        replace(one, name=bare_name(one.name)) for one in found
    )  # fmt: skip
    gone = tuple(replace(one, name=bare_name(one.name)) for one in snapshot.gone)
    return replace(snapshot, workers=workers, processes=processes, gone=gone)


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


def _render_dtypes(probe: Probe) -> str:
    title = f"dtypes, torch {probe.torch} on {probe.device}: {say_headline(probe)}"
    lines = [f"  {row.text}" + (f": {row.why}" if row.why else "") for row in build_rows(probe)]
    return "\n".join([title, *lines])


def _render_gone(snapshot: Snapshot) -> list[str]:
    return [
        _("{name} ({pid}) {words}").format(
            name=one.name, pid=one.pid, words=wording.gone(one, snapshot.time)
        )
        for one in snapshot.gone
    ]
