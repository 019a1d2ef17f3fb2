"""The plot in Braille, and text in the cells of a terminal."""

import pytest

from mpsbar.core.trends import Point, ProcessSeries
from mpsbar.ui.terminal.frame import Frame, Hit, StyledSpan, fit_line, line_of, slice_line, text_of
from mpsbar.ui.terminal.panels import choose_span, render_plot, round_up
from mpsbar.ui.text import cells

MB = 1 << 20


def track(*values, step=10.0, allocated=()):
    made = ProcessSeries(None, 0.0)
    made.held = tuple(Point(n * step, value * MB) for n, value in enumerate(values))
    made.allocated = tuple(Point(n * step, value * MB) for n, value in enumerate(allocated))
    return made


def drawn(*arguments):
    return [text_of(line) for line in render_plot(*arguments)]


def test_a_staircase_with_its_live_part_full():
    steps = track(10, 20, 30, 40, 30, 20, allocated=(10, 10, 10, 10, 10, 10))
    assert drawn(steps, 60.0, 40, 4) == [
        " 40.0 MB ┤              ⠨⡫⡫⡫⡫⡃          ",
        "         │         ⠨⡫⡫⡫⡫⡫⡪⡪⡪⡪⡪⡫⡫⡫⡫⡃     ",
        "         │    ⠨⡫⡫⡫⡫⡫⡪⡪⡪⡪⡪⡪⡪⡪⡪⡪⡪⡪⡪⡪⡪⡫⡫⡫⡫⡫",
        "       0 ┤⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿",
    ]


def test_every_line_is_as_wide_as_asked():
    for width in (20, 33, 120):
        assert {cells.width(line) for line in drawn(track(1, 5, 3), 30.0, width, 6)} == {width}


def test_what_is_there_is_seen_however_little_it_is():
    low = drawn(track(1, 1, 1, 1000, 1, 1, 1), 60.0, 40, 3)
    assert "⣀" in low[-1]
    assert " " in drawn(track(0, 0, 0, 8), 60.0, 40, 3)[-1][10:]


def test_nothing_known_is_said():
    assert drawn(None, 0.0, 40, 5) == ["no data yet"]
    assert drawn(ProcessSeries(None, 0.0), 0.0, 40, 5) == ["no data yet"]
    assert drawn(track(5), 5000.0, 40, 5) == ["no data yet"]  # long ago
    assert drawn(track(5), 1.0, 40, 0) == []


@pytest.mark.parametrize(
    ("oldest", "span"),
    [(0, 60.0), (60, 60.0), (61, 120.0), (200, 300.0), (599, 600.0), (9000, 600.0)],
)
def test_it_goes_back_as_far_as_there_is_something(oldest, span):
    made = ProcessSeries(None, 0.0)
    made.footprint = (Point(10_000.0 - oldest, 1),)
    assert choose_span(made, 10_000.0) == span


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


def test_a_line_is_cut_in_its_cells():
    line = (StyledSpan("ab", "ok"), StyledSpan("日本", "dim"), StyledSpan("cd"))
    assert text_of(slice_line(line, 1, 4)) == "b日"
    assert text_of(slice_line(line, 3, 7)) == " 本c"
    assert cells.width(text_of(fit_line(line, 5))) == 5
    assert fit_line(line_of("a"), 3) == (StyledSpan("a"), StyledSpan("  "))


def test_what_lies_on_top_is_clicked():
    frame = Frame((), (Hit(0, 0, 9, "under"), Hit(0, 2, 4, "over")))
    assert [frame.target(x, 0) for x in (1, 2, 4, 9)] == ["under", "over", "under", None]
