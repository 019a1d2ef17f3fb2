"""Several hosts as text, one below the other, and as JSON. Pure."""

import time
from typing import Any

from mpsbar.fleet.hosts import HostReading
from mpsbar.ui.text import wording
from mpsbar.ui.text.cells import Paint, plain
from mpsbar.ui.text.status import render_table
from mpsbar.ui.text.status_json import build_status

# Of the JSON of one computer; health is in the words that the host itself sent.
_HOST_KEYS = ("schema", "time", "machine", "workers", "processes")


def render_hosts(
    readings: list[HostReading], paint: Paint = plain, width: int | None = None
) -> str:
    return "\n\n".join(render_host(reading, paint, width) for reading in readings)


def render_host(reading: HostReading, paint: Paint = plain, width: int | None = None) -> str:
    status = reading.status
    if status is None:
        return f"{paint(reading.host, 'head')}  {say_silence(reading)}"
    machine = status.snapshot.machine
    lines = [f"{paint(reading.host, 'head')}  {wording.machine(machine)}"]
    lines.append(wording.gpu(machine.gpu))
    if reading.problem is not None:
        lines.append(paint(say_silence(reading), "warning"))
    elif status.level in ("warning", "critical"):
        lines.append(paint("; ".join(status.reasons) or status.level, status.level))
    if status.snapshot.families:
        lines.append(render_table(status.snapshot, paint, width))
    else:
        lines.append(wording.found(status.snapshot))
    return "\n".join(line for line in lines if line)


def say_silence(reading: HostReading) -> str:
    reason = f" ({reading.problem})" if reading.problem else ""
    if reading.heard is None:
        return f"no answer{reason}"
    at = time.strftime("%H:%M:%S", time.localtime(reading.heard))
    return f"no answer since {at}{reason}"


def build_hosts(readings: list[HostReading]) -> dict[str, Any]:
    """The JSON of `status --host` (schema 1): of what each host said only what we understood."""
    return {"schema": 1, "hosts": {reading.host: _build_host(reading) for reading in readings}}


def _build_host(reading: HostReading) -> dict[str, Any]:
    status: dict[str, Any] | None = None
    if reading.status is not None:
        whole = build_status(reading.status.snapshot)
        status = {key: whole[key] for key in _HOST_KEYS}
        status["health"] = {"level": reading.status.level, "reasons": list(reading.status.reasons)}
    return {"problem": reading.problem, "heard": reading.heard, "status": status}
