"""Draws the README's pictures: python packaging/draw_pictures.py [FOLDER [NAME …]]

menu, top, hosts (top of several computers) and report; drawn by hand when one of them has changed,
and committed.
"""

import asyncio
import math
import re
import sys
from dataclasses import replace
from datetime import timezone
from pathlib import Path

from chromium import draw_page, require_chromium
from menu_page import build_page, measure_page

from mpsbar import __version__
from mpsbar.core.host_readings import HostReading, RemoteStatus
from mpsbar.core.settings import Theme
from mpsbar.core.snapshot import Worker
from mpsbar.history.period import Run, TimeSeries
from mpsbar.monitor import Monitor
from mpsbar.system.replay import RecordedComputer, read_recording
from mpsbar.ui.menu import build_menu
from mpsbar.ui.rows import Menu, UiState

DOCS = Path(__file__).parents[1] / "docs"
RECORDING = "m1max-64gb"
CAPTION = "A drawing of the menu, not a screenshot: a recorded M1 Max with made-up workers"
APPEARANCES: tuple[Theme, ...] = ("light", "dark")
SCALE = 2
TOP_SIZE = (120, 36)
HOSTS_SIZE = (120, 20)
HOSTS = {"studio": RECORDING, "air": "m1-8gb"}
REPORT_SIZE = (1000, 708)
STEPS = range(-180, 1)  # of what moves


def read_menu() -> Menu:
    """The menu that the app would show on that machine."""
    monitor = Monitor(RecordedComputer(read_recording(RECORDING)))
    try:
        return build_menu(monitor.read_once(), UiState(is_clickable=True, login="on"))
    finally:
        monitor.close()


def draw_menu(program: str, appearance: Theme) -> bytes:
    """The first row with a submenu is open."""
    menu = read_menu()
    opened = next((row.key for row in menu.rows if row.children), "")
    return draw_page(
        program, build_page(menu, appearance, opened, CAPTION), measure_page(menu), SCALE
    )


def draw_top(program: str, theme: Theme) -> bytes:
    """A screenshot by textual itself: the app that users see, on the recorded Mac."""
    return _draw_svg(program, asyncio.run(shoot_top(theme, TOP_SIZE)))


def draw_hosts(program: str, theme: Theme) -> bytes:
    """The same of `mpsbar top --host`."""
    return _draw_svg(program, asyncio.run(shoot_hosts(theme, HOSTS_SIZE)))


def draw_report(program: str, appearance: Theme) -> bytes:
    return draw_page(program, build_report(appearance), REPORT_SIZE, SCALE)


def _draw_svg(program: str, svg: str) -> bytes:
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert found is not None
    width, height = (math.ceil(float(number)) for number in found.groups())
    page = f"<style>body{{margin:0}}svg{{display:block;width:{width}px}}</style>{svg}"
    return draw_page(program, page, (width, height), 1)


async def shoot_top(theme: Theme, size: tuple[int, int]) -> str:
    """Some minutes of the recording, in which memory moves as in a training."""
    from mpsbar.core.settings import LoadedSettings, Settings
    from mpsbar.core.trends import Trends
    from mpsbar.ui.terminal.app import TerminalApp

    monitor = Monitor(RecordedComputer(read_recording(RECORDING)))
    trends = Trends()
    now = monitor.tick()
    for step in range(-150, 1):
        seen = replace(
            now, time=now.time + 2 * step, workers=tuple(_move(w, step) for w in now.workers)
        )
        trends.add(seen)
    monitor.latest = replace(
        seen, process_series=trends.copy_processes(), machine_series=trends.copy_machine()
    )
    app = TerminalApp(monitor, LoadedSettings(Settings(theme=theme), ""))
    try:
        async with app.run_test(size=size) as pilot:
            await pilot.pause(1.0)
            return app.export_screenshot(title="mpsbar top: a recorded M1 Max with made-up workers")
    finally:
        monitor.close()


async def shoot_hosts(theme: Theme, size: tuple[int, int]) -> str:
    """Both recorded Macs as hosts that answer, and some minutes of them."""
    from mpsbar.core.settings import Settings
    from mpsbar.ui.terminal.hosts_app import HostsApp
    from mpsbar.ui.text.alerts import say_reason

    readings: list[HostReading] = []
    app = HostsApp(lambda: readings, lambda *_: "", Settings(theme=theme))
    monitors = {host: Monitor(RecordedComputer(read_recording(HOSTS[host]))) for host in HOSTS}
    try:
        now = {host: monitor.tick() for host, monitor in monitors.items()}
        for step in range(-150, 1):
            readings = []
            for host, seen in now.items():
                workers = tuple(_move(worker, step) for worker in seen.workers)
                moved = replace(seen, workers=workers)
                reasons = tuple(
                    say_reason(r, seen.names.get(r.pid or 0)) for r in seen.health.reasons
                )
                status = RemoteStatus(moved, seen.health.level, reasons)
                readings.append(HostReading(host, status, seen.time + 2 * step))
            app.state.update(readings)
        async with app.run_test(size=size) as pilot:
            readings = [replace(reading) for reading in readings]  # new ones: they are drawn
            await pilot.pause(1.5)
            return app.export_screenshot(
                title="mpsbar top --host studio --host air: recorded Macs with made-up workers"
            )
    finally:
        for monitor in monitors.values():
            monitor.close()


def build_report(appearance: str) -> str:
    """The page of the recorded Mac after an hour in which memory moved as in a training."""
    from mpsbar.history.period import Period, RecordedEvent
    from mpsbar.history.report.page import Report, render_report
    from mpsbar.system.paths import resource

    monitor = Monitor(RecordedComputer(read_recording(RECORDING)))
    try:
        now = monitor.tick()
    finally:
        monitor.close()
    times = tuple(now.time + 20 * step for step in STEPS)
    worker = now.workers[0]
    free = RecordedEvent(times[60], "free", "done", worker.pid, worker.name, size=1 << 30)
    runs = tuple(_record(each, times) for each in now.workers)
    period = Period(times[0], times[-1], runs=runs, events=(free,))
    report = Report(__version__, now, (period,))
    style, script = (resource(name).read_text("utf-8") for name in ("report.css", "report.js"))
    is_dark = "all" if appearance == "dark" else "not all"
    return render_report(
        report, style.replace("(prefers-color-scheme: dark)", is_dark), script, timezone.utc
    )


def _record(worker: Worker, times: tuple[float, ...]) -> Run:
    moved = [_move(worker, step) for step in STEPS]
    columns = {name: tuple(getattr(each, name) for each in moved) for name in ("cached", "held")}
    columns["allocated"] = tuple(
        None if each.held is None or each.cached is None else each.held - each.cached
        for each in moved
    )
    series = TimeSeries(times, columns)
    known = {"held": worker.held}
    return Run(
        worker.pid, worker.name, "mps", True, times[0], times[-1],
        peak=series.most("held"), known=known, series=series,
    )  # fmt: skip


def _move(worker: Worker, step: int) -> Worker:
    """Its memory in waves, which end at what was recorded."""
    wave = 0.75 + 0.25 * math.cos(step / 11) + step / 900
    backends = tuple(
        replace(
            backend,
            **{
                name: int(size * wave)
                for name in ("allocated", "reserved", "driver")
                if (size := getattr(backend, name)) is not None
            },
        )
        for backend in worker.backends
    )
    return replace(worker, backends=backends)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS
    program = require_chromium()
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or PICTURES:
        for appearance in APPEARANCES:
            path = folder / f"{name}-{appearance}.png"
            path.write_bytes(PICTURES[name](program, appearance))
            print(f"drawn: {path}")


PICTURES = {
    "menu": draw_menu,
    "top": draw_top,
    "hosts": draw_hosts,
    "report": draw_report,
}


if __name__ == "__main__":
    main()
