"""Renders several hosts, one below the other, each as `mpsbar status` shows a computer. Pure."""

from mpsbar.core.host_readings import HostReading
from mpsbar.ui.status_table import render_table
from mpsbar.ui.text import wording
from mpsbar.ui.text.cells import Paint, plain
from mpsbar.ui.text.hosts import say_silence
from mpsbar.ui.text.machine import describe_gpu, describe_machine


def render_hosts(
    readings: list[HostReading], paint: Paint = plain, width: int | None = None
) -> str:
    return "\n\n".join(_render_host(reading, paint, width) for reading in readings)


def _render_host(reading: HostReading, paint: Paint = plain, width: int | None = None) -> str:
    status = reading.status
    if status is None:
        return f"{paint(reading.host, 'head')}  {say_silence(reading)}"
    machine = status.snapshot.machine
    lines = [f"{paint(reading.host, 'head')}  {describe_machine(machine)}"]
    lines.append(describe_gpu(machine.gpu))
    if reading.problem is not None:
        lines.append(paint(say_silence(reading), "warning"))
    elif status.level in ("warning", "critical"):
        lines.append(paint("; ".join(status.reasons) or status.level, status.level))
    if status.snapshot.families:
        lines.append(render_table(status.snapshot, paint, width))
    else:
        lines.append(wording.found(status.snapshot))
    return "\n".join(line for line in lines if line)
