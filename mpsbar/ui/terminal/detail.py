"""What is known of the selected process, or of the machine: a chart, and facts."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from rich.segment import Segment
from rich.text import Text
from textual import events

from mpsbar.core.actions import FindTensors
from mpsbar.core.events import EndedProcess
from mpsbar.core.health import find_budget
from mpsbar.core.machine import Machine, Process
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.core.trends import MachineSeries, ProcessSeries
from mpsbar.language import _
from mpsbar.system.native_operations import read_native_operations
from mpsbar.ui.process_submenu import build_tensors
from mpsbar.ui.process_table import TableRow
from mpsbar.ui.terminal.chart import (
    CellRun,
    ChartMark,
    MemoryChart,
    chart_machine,
    chart_process,
    render_chart,
)
from mpsbar.ui.terminal.drawing import draw_history, make_text
from mpsbar.ui.terminal.lines_view import LinesView
from mpsbar.ui.terminal.themes import Palette
from mpsbar.ui.text import cells, endings, progress, wording
from mpsbar.ui.text.machine import describe_gpu, describe_machine


class Selection(Protocol):
    """What is selected in one of the two screens, and what is known of it."""

    @property
    def snapshot(self) -> Snapshot: ...
    @property
    def row(self) -> TableRow | None: ...
    @property
    def process(self) -> Worker | Process | None: ...
    @property
    def ended(self) -> EndedProcess | None: ...
    @property
    def series(self) -> ProcessSeries | None: ...
    @property
    def marks(self) -> tuple[ChartMark, ...]: ...


Fact = tuple[str | None, str]  # a label, "" below one, None for a whole line


def build_machine_chart(state: Selection) -> MemoryChart:
    series = state.snapshot.machine_series or MachineSeries()
    return chart_machine(series, state.snapshot.machine.memory_total, state.snapshot.time)


def build_chart(state: Selection) -> MemoryChart | None:
    series, ended = state.series, state.ended
    if series is not None:
        now = state.snapshot.time if ended is None else ended.ended
        return chart_process(series, now, state.marks)
    if state.row is None:
        return build_machine_chart(state)
    return None


def render_title(state: Selection, palette: Palette, of_machine: bool = False) -> Text:
    """Renders the name, and what the areas are, with their sizes now."""
    row = None if of_machine else state.row
    name = _("this computer") if row is None else row.cells["NAME"].removeprefix("└ ")
    title = Text(no_wrap=True, end="").append_text(make_text(cells.cut_middle(name, 32), "bold"))
    for layer, words in _legend(state) if row is not None else _machine_legend():
        sign = "■" if palette.has_colour else dict(_SHADED).get(layer, "░")
        title.append_text(make_text("  " + sign + " ", palette.style(layer)))
        title.append_text(make_text(words, palette.style("quiet")))
    marks = {"▲": _("freed"), "!": _("alert")}
    for char in sorted({mark.char for mark in (() if row is None else state.marks)}):
        title.append_text(make_text(f"  {char} ", palette.style("warning")))
        title.append_text(make_text(marks[char], palette.style("quiet")))
    return title


_SHADED = (("allocated", "█"), ("cached", "▓"), ("other", "▒"), ("footprint", "░"))


def _machine_legend() -> Iterator[tuple[str, str]]:
    yield "allocated", _("GPU memory")
    yield "footprint", _("used")


def _legend(state: Selection) -> Iterator[tuple[str, str]]:
    process, series = state.process, state.series
    if series is None:
        return
    worker = process if isinstance(process, Worker) else None
    if worker is not None and worker.held is not None:
        allocated = worker.total(lambda backend: backend.allocated)
        other = worker.total(lambda backend: backend.other)
        yield "allocated", _("allocated {size}").format(size=wording.size(allocated))
        yield "cached", wording.cached(worker) or _("cached {size}").format(size=wording.UNKNOWN)
        if other:
            yield "other", _("other {size}").format(size=wording.size(other))
    elif series.held:
        yield from (("allocated", _("allocated")), ("cached", _("cached")))
    outside = worker.process if worker is not None else process
    if isinstance(outside, Process):
        kind = _("resident") if outside.footprint_kind == "rss" else _("footprint")
        yield "footprint", f"{kind} {wording.size(outside.footprint)}"


def render_facts(state: Selection, palette: Palette, width: int) -> list[Text]:
    """Renders one line per fact, long ones cut; then what does not fit in one."""
    lines: list[Text] = []
    for label, words in _list_facts(state):
        start = cells.pad(label, 9) + " " if label is not None else ""
        text = Text.assemble(make_text(start, palette.style("quiet")), make_text(words))
        text.truncate(max(width, 1), overflow="ellipsis")
        lines.append(text)
        if label == _("Speed") and state.series is not None and len(state.series.speed) > 1:
            history = draw_history(state.series.speed, min(width - 10, 40), palette)
            lines.append(Text.assemble(" " * 10, history))
    return lines


def _list_facts(state: Selection) -> Iterable[Fact]:
    process = state.process
    if isinstance(process, Worker):
        return _of_worker(process, state)
    if isinstance(process, Process):
        return _of_process(process)
    if state.ended is not None:
        lines = endings.say_details(state.ended, read_native_operations, str(Path.home()))
        lines = lines or [endings.describe_end(state.ended, 0.0)]
        return [(None, line) for line in lines]
    if state.row is not None:  # children that are copies
        return [(None, f"{state.row.cells['NAME']}, {state.row.cells['NOTE']}")]
    return _of_machine(state.snapshot.machine, state)


def _of_worker(worker: Worker, state: Selection) -> Iterator[Fact]:
    snapshot = state.snapshot
    yield _("PID"), f"{worker.pid} · {wording.device(worker)}"
    budget = find_budget(snapshot, (worker,))
    if worker.held is not None and budget is not None:
        yield _("Held"), wording.part(worker.held, budget)
    if worker.limit is not None:
        yield _("Limit"), wording.size(worker.limit)
    if worker.progress is not None:
        yield _("Progress"), progress.say_progress(worker.progress)
        if worker.progress.speed is not None:
            yield _("Speed"), progress.say_speed(*worker.progress.speed)
    versions = [f"{name} {version}" for name, version in worker.frameworks.items()]
    python = f"Python {worker.python}" if worker.python else ""
    yield _("Runs"), " · ".join(filter(None, [*versions, python]))
    yield from _of_surroundings(worker.process, worker.command)
    if "tensors" in worker.methods:
        if worker.pid in snapshot.tensors or any(
            isinstance(action, FindTensors) and action.pid == worker.pid
            for action in snapshot.pending
        ):
            for number, row in enumerate(build_tensors(snapshot, worker.pid)):
                yield "" if number else _("Tensors"), row.text
        else:
            yield _("Tensors"), _("press t to count them")


def _of_process(process: Process) -> Iterator[Fact]:
    yield _("PID"), f"{process.pid} · {wording.not_connected(process)}"
    kind = _("Resident") if process.footprint_kind == "rss" else _("Footprint")
    yield kind, wording.size(process.footprint)
    yield _("Connect"), wording.how_to_connect_process(process)
    yield from _of_surroundings(process, process.command)


def _of_surroundings(process: Process | None, command: tuple[str, ...]) -> Iterator[Fact]:
    if command:
        yield _("Command"), " ".join(command)
    if process is not None and process.environment:
        yield _("Env"), process.environment
    for name, value in (process.settings if process is not None else {}).items():
        yield _("Setting"), f"{name}={value}"


def _of_machine(machine: Machine, state: Selection) -> Iterator[Fact]:
    yield _("Computer"), " · ".join(filter(None, (machine.chip, machine.model, machine.os)))
    yield _("Memory"), describe_machine(machine)
    if text := describe_gpu(machine.gpu):
        yield _("GPU"), text
    if machine.on_battery is not None:
        yield _("Power"), _("battery") if machine.on_battery else _("power adapter")
    for problem in state.snapshot.problems:
        yield _("Problem"), f"{problem.reader}: {problem.text}"


class ChartView(LinesView):
    """Draws a chart."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self._title = Text()
        self._chart: MemoryChart | None = None
        self._palette: Palette | None = None

    def show(self, title: Text, chart: MemoryChart | None, palette: Palette) -> None:
        self._title, self._chart, self._palette = title, chart, palette
        self._draw()

    def on_resize(self, _event: events.Resize) -> None:
        self._draw()

    def _draw(self) -> None:
        if self._palette is None or not self.size.height:
            return
        width, height = self.size
        title = self._title.copy()
        title.truncate(width, overflow="ellipsis")
        lines: list[list[CellRun]] = []
        if self._chart is not None:
            lines = render_chart(self._chart, width, height - 1, self._palette.has_colour)
        if not lines and height > 1:
            lines = [[CellRun(_("no data yet"), "quiet")]]
        style = self._palette.style
        drawn = [
            [Segment(run.text, style(run.layer, run.behind)) for run in line] for line in lines
        ]
        self.show_lines([title, *drawn])
