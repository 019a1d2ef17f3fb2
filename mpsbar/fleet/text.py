"""Several hosts as text, one below the other. Pure."""

import time

from mpsbar.fleet.hosts import HostReading
from mpsbar.ui.text import wording
from mpsbar.ui.text.cells import Paint, plain
from mpsbar.ui.text.status import render_table


def render_hosts(readings: list[HostReading], paint: Paint = plain) -> str:
    return "\n\n".join(render_host(reading, paint) for reading in readings)


def render_host(reading: HostReading, paint: Paint = plain) -> str:
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
        lines.append(render_table(status.snapshot, paint))
    else:
        lines.append(wording.found(status.snapshot))
    return "\n".join(line for line in lines if line)


def say_silence(reading: HostReading) -> str:
    reason = f" ({reading.problem})" if reading.problem else ""
    if reading.heard is None:
        return f"no answer{reason}"
    at = time.strftime("%H:%M:%S", time.localtime(reading.heard))
    return f"no answer since {at}{reason}"
