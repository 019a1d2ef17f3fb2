"""The rows of the hosts: gauges with their history side by side, runs, and notes."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual.binding import Binding, BindingType

from mpsbar.core.host_readings import HostReading
from mpsbar.core.snapshot import Snapshot
from mpsbar.language import _
from mpsbar.ui.columns import translate
from mpsbar.ui.terminal.drawing import draw_history, draw_load, draw_progress, make_text
from mpsbar.ui.terminal.head import Gauge, build_gauges
from mpsbar.ui.terminal.hosts_state import HostsState
from mpsbar.ui.terminal.table import Headers, SteadyTable
from mpsbar.ui.terminal.themes import Palette
from mpsbar.ui.text import cells, progress, wording
from mpsbar.ui.text.hosts import say_condition
from mpsbar.ui.text.machine import describe_pressure

_TALLEST = 4  # lines of one host
_TALL_WINDOW = 34
_CELL_SECONDS = 4  # of a history
_MAX_NAME = 24
_MEMORY, _GPU, _HELD, _COUNT = 15, 4, 9, 4
_MIN_BAR, _MAX_BAR = 6, 30
_MIN_NOTE = 18
_RUN_NAME, _RUN_BAR, _RUN_WORDS = 16, 8, 8
_WIDE = 100


class HostTable(SteadyTable):
    """The hosts, or the processes of them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", _("One host"), key_display="⏎"),
    ]


class HostColumns(NamedTuple):
    """Widths; a bar of 0 is not shown."""

    name: int
    memory_bar: int
    gpu_bar: int
    note: int

    @property
    def headers(self) -> Headers:
        memory = self.memory_bar + _MEMORY + 1 if self.memory_bar else _MEMORY
        gpu = self.gpu_bar + _GPU + 1 if self.gpu_bar else _GPU
        headers = [
            ("HOST", translate("HOST"), self.name), ("MEMORY", translate("MEMORY"), memory),
            ("GPU", "GPU" if self.gpu_bar else "GPU".rjust(_GPU), gpu),
            ("HELD", cells.fit(translate("HELD"), _HELD, to_right=True), _HELD),
            ("RUNS", cells.fit(translate("RUNS"), _COUNT, to_right=True), _COUNT),
            ("NOTE", translate("NOTE"), self.note),
        ]  # fmt: skip
        return headers if self.note > 0 else headers[:-1]


def choose_height(hosts: int, lines: int) -> int:
    """Returns the lines of each host, so that all hosts take at most half of the window."""
    room = (lines - 1) // 2 - 3
    tallest = _TALLEST if lines >= _TALL_WINDOW else 2
    return max(1, min(tallest, room // max(hosts, 1)))


def fit_columns(readings: Sequence[HostReading], width: int, height: int) -> HostColumns:
    names = [cells.width(reading.host) for reading in readings]
    if height > 1 and width >= _WIDE:
        names += [cells.width(_say_chip(reading)) for reading in readings]
        names += [cells.width(_say_pressure(reading)) for reading in readings]
    name = min(max([4, *names]), _MAX_NAME, max(width // 4, 8))
    room = width - name - _MEMORY - _GPU - _HELD - _COUNT - 5
    spare = room - _MIN_NOTE
    memory_bar = gpu_bar = 0
    if spare >= 2 * (_MIN_BAR + 1):
        memory_bar = gpu_bar = min(max(spare // 3, _MIN_BAR), _MAX_BAR)
    elif spare >= _MIN_BAR + 1:
        memory_bar = spare - 1
    bars = sum(bar + 1 for bar in (memory_bar, gpu_bar) if bar)
    return HostColumns(name, memory_bar, gpu_bar, room - bars)


def draw_host(
    reading: HostReading,
    snapshot: Snapshot | None,
    columns: HostColumns,
    height: int,
    palette: Palette,
) -> list[Text]:
    """Draws the cells of a host, of up to `height` lines; of three or more the last stays empty, to
    separate hosts."""
    lines = height if height < 3 else height - 1
    is_old = reading.problem is not None
    quiet = palette.style("quiet")
    chip = make_text(cells.cut(_say_chip(reading), columns.name), quiet)
    pressure = make_text(cells.cut(_say_pressure(reading), columns.name), quiet)
    name = make_text(cells.fit(reading.host, columns.name), "bold")
    note = _stack(_draw_notes(reading, snapshot, columns.note, lines, palette), lines)
    first = _stack([name, chip, pressure], lines)
    if snapshot is None:
        return [first, *(Text("") for _head in range(4)), note][: len(columns.headers)]
    memory, gpu, *_others = build_gauges(snapshot)
    gpu = gpu._replace(text=wording.percent(snapshot.machine.gpu.utilization))
    base = quiet if is_old else ""
    count = len(snapshot.workers) + len(snapshot.unconnected)
    drawn = [
        first,
        _draw_gauge(memory, columns.memory_bar, _MEMORY, lines, is_old, palette),
        _draw_gauge(gpu, columns.gpu_bar, _GPU, lines, is_old, palette),
        make_text(cells.fit(wording.size(snapshot.held), _HELD, True), base),
        make_text(cells.fit(str(count), _COUNT, True), base),
        note,
    ]
    return drawn[: len(columns.headers)]


def _draw_gauge(
    gauge: Gauge, bar: int, width: int, lines: int, is_old: bool, palette: Palette
) -> Text:
    """Draws a bar with its value, and the last minutes below; an old one is grey."""
    style = palette.style("quiet") if is_old else "bold"
    value = make_text(cells.fit(gauge.text, width, to_right=width == _GPU), style)
    if bar and (gauge.part is None or is_old):
        value = Text.assemble(make_text("░" * bar, palette.style("footprint")), " ", value)
    elif bar and gauge.part is not None:
        value = Text.assemble(draw_load(gauge.part, bar, palette), " ", value)
    if lines < 2 or not bar:
        return value
    history = draw_history(
        gauge.points, value.cell_len, palette, gauge.most, lines - 1, _CELL_SECONDS
    )
    if is_old:
        history = Text(history.plain, palette.style("quiet"), no_wrap=True, end="")
    return Text("\n", no_wrap=True, end="").join([value, history])


def _draw_notes(
    reading: HostReading, snapshot: Snapshot | None, width: int, lines: int, palette: Palette
) -> Iterator[Text]:
    """Draws what is wrong, then the progress of its runs."""
    if condition := say_condition(reading):
        level = "warning" if reading.problem is not None else "quiet"
        if reading.problem is None and reading.status is not None:
            level = "error" if reading.status.level == "critical" else "warning"
        wrapped = cells.wrap(condition, max(width, 2))
        wrapped[lines - 1 :] = [" ".join(wrapped[lines - 1 :])]  # and cut, where it is too long
        for line in filter(None, wrapped):
            yield make_text(cells.cut(line, width), palette.style(level))
    if snapshot is None or reading.problem is not None:
        return
    for worker in snapshot.workers:
        run = worker.progress
        if run is None:
            continue
        words = progress.say_briefly(run)
        if width < _RUN_NAME + _RUN_BAR + _RUN_WORDS + 2 or run.fraction is None:
            yield make_text(cells.cut(f"{worker.name} {words}", width))
            continue
        bar = draw_progress(run.fraction, _RUN_BAR, palette)
        name = make_text(cells.fit(worker.name, _RUN_NAME))
        rest = make_text(cells.cut(words, width - _RUN_NAME - _RUN_BAR - 2))
        yield Text.assemble(name, " ", bar, " ", rest)


def say_none(state: HostsState) -> str:
    """Says why there are no processes in the table; "": there are some, or no host has answered
    yet."""
    if state.rows or not state.snapshots:
        return ""
    if state.filter:
        return _("No rows contain “{text}” (Esc shows all)").format(text=state.filter)
    return wording.nothing_runs()


def _stack(lines: Sequence[Text] | Iterator[Text], most: int) -> Text:
    kept = [line for _number, line in zip(range(most), lines, strict=False)]
    return Text("\n", no_wrap=True, end="").join(kept)


def _say_chip(reading: HostReading) -> str:
    chip = None if reading.status is None else reading.status.snapshot.machine.chip
    return (chip or "").removeprefix("Apple ")


def _say_pressure(reading: HostReading) -> str:
    """Returns the swap of a host that answers, or where none is used its pressure."""
    if reading.status is None or reading.problem is not None:
        return ""
    machine = reading.status.snapshot.machine
    if machine.swap_used:
        return _("swap {size}").format(size=wording.size(machine.swap_used))
    return "" if machine.pressure is None else describe_pressure(machine.pressure)
