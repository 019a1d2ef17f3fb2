"""The chart of `top`: stacked areas in eighths of a cell, round sizes and times, marks."""

import time

import pytest

from mpsbar.core.trends import MachineSeries, Point, ProcessSeries
from mpsbar.ui.terminal.chart import (
    ChartMark,
    MemoryChart,
    chart_machine,
    chart_process,
    choose_span,
    render_chart,
    round_up,
)
from mpsbar.ui.text import cells

MB = 1 << 20


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def series(held=(), allocated=(), cached=(), footprint=(), step=10.0):
    def points(values):
        return tuple(Point(n * step, value * MB) for n, value in enumerate(values))

    return ProcessSeries(
        None, 0.0, points(footprint), points(held), points(allocated), points(cached)
    )


def draw(chart, width, height, **more):
    return [
        "".join(run.text for run in line) for line in render_chart(chart, width, height, **more)
    ]


STEPS = series((20, 40, 40, 30), (10, 10, 20, 20), (5, 10, 10, 5), (30, 60, 60, 40))


def test_each_layer_has_a_shade_of_its_own_without_colour():
    lines = draw(chart_process(STEPS, 40.0), 40, 8, has_colour=False)
    assert len(lines) == 8
    assert {char for line in lines[:6] for char in line[11:]} == set(" ░▒▓█")


def test_in_colour_a_cell_shows_two_layers_at_an_eighth():
    lines = render_chart(chart_process(STEPS, 40.0), 40, 8)
    seen = {(run.layer, run.behind) for line in lines[:6] for run in line}
    assert ("", "allocated") in seen  # a whole cell is its background: no gaps between lines
    assert any(layer and behind and layer != behind for layer, behind in seen)


@pytest.mark.parametrize("width", [20, 33, 120])
def test_every_line_is_as_wide_as_asked(width):
    assert {cells.width(line) for line in draw(chart_process(STEPS, 40.0), width, 9)} == {width}


def test_what_is_there_is_seen_however_little_it_is():
    low = draw(chart_process(series(held=(1, 1, 1, 1000, 1, 1, 1)), 60.0), 40, 5)
    assert "▁" in low[2]


def test_nothing_known_draws_nothing():
    assert render_chart(MemoryChart((), 0.0), 40, 8) == []
    assert render_chart(chart_process(series(held=(0, 0)), 20.0), 40, 8) == []
    assert render_chart(chart_process(STEPS, 40.0), 12, 8) == []  # no room
    assert render_chart(chart_process(STEPS, 40.0), 40, 0) == []


@pytest.mark.parametrize("height", [1, 2, 3])
def test_where_there_is_little_room_it_has_no_axis(height):
    """It was said then that there is no data."""
    lines = draw(chart_process(STEPS, 40.0), 40, height)
    assert len(lines) == height
    assert "60.0 MB ┤" in lines[0]
    assert set(lines[-1].partition("┤")[2].strip()) <= set("▁▂▃▄▅▆▇█")
    assert lines[-1].partition("┤")[2].strip()


def test_times_are_round_and_marks_stand_where_it_happened():
    *_, axis, labels = draw(
        chart_process(STEPS, 40.0, [ChartMark(20.0, "▲"), ChartMark(-99.0, "!")]), 70, 8
    )
    assert "00:00:15" in labels
    assert "00:00:30" in labels
    assert axis.count("▲") == 1
    assert "!" not in axis  # before the first column
    column = round((20.0 - 40.0 + 60.0) * 60 / 60) - 1 + 10
    assert abs(axis.index("▲") - column) <= 1


def test_the_machine_below_all_that_it_has():
    machine = MachineSeries(
        memory_available=(Point(0.0, 20 * MB), Point(9.0, 10 * MB)),
        gpu_memory=(Point(0.0, 5 * MB),),
    )
    chart = chart_machine(machine, 40 * MB, 10.0)
    assert [point.value // MB for point in chart.layers[-1].points] == [20, 30]
    assert draw(chart, 40, 8)[0].startswith(" 40.0 MB ┤")


@pytest.mark.parametrize(
    ("oldest", "span"),
    [(0, 60.0), (60, 60.0), (61, 120.0), (200, 300.0), (599, 600.0), (9000, 600.0)],
)
def test_it_goes_back_as_far_as_there_is_something(oldest, span):
    made = ProcessSeries(None, 0.0, footprint=(Point(10_000.0 - oldest, 1),))
    assert choose_span(chart_process(made, 10_000.0)) == span


@pytest.mark.parametrize(
    ("size", "ceiling"),
    [
        (0, 1 << 10),
        (5 * MB, 6 * MB),
        (257 * MB, 300 * MB),
        (6 << 30, 6 << 30),
        (61 << 30, 80 << 30),
    ],
)
def test_the_axis_ends_at_a_number_that_reads_well(size, ceiling):
    assert round_up(size) == ceiling
