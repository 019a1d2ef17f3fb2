"""The drawing of a chart: its scale, its steps, its holes, and what its script reads."""

import json
import re

import pytest
from history_kit import GB, HOSTILE, MB, NOW

from mpsbar.history.period import TimeSeries
from mpsbar.history.report.svg import Chart, Line, draw_chart, find_top, find_top_speed


def test_what_the_script_reads_cannot_end_it():
    lines = (Line("held", "</script><script>alert(1)//"),)
    series = TimeSeries((NOW,), {"held": (GB,)})
    drawn = draw_chart(Chart("c", "t", "", series, lines, NOW - 10, NOW))
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', drawn)
    assert json.loads(data)["lines"][0]["name"] == "</script><script>alert(1)//"


@pytest.mark.parametrize(
    ("most", "top"),
    [
        (0, MB),
        (MB, MB),
        (3 * GB, 4 * GB),
        (27 * GB, 32 * GB),
        (999 * MB, 1024 * MB),
        (1 << 50, 1 << 50),
    ],
)
def test_the_scale_ends_at_a_round_number(most, top):
    assert find_top(most) == top


def path_of(series, last=None, since=NOW - 1000, until=NOW):
    chart = Chart("c", "t", "", series, (Line("held", "held"),), since, until, last=last)
    return re.findall(r'class="line held" d="([^"]+)"', draw_chart(chart))[0]


def test_steps_hold_until_the_next_reading_but_not_over_a_silence():
    times = (NOW - 1000, NOW - 950, NOW - 900, NOW - 300)
    path = path_of(TimeSeries(times, {"held": (GB, GB, 2 * GB, GB)}))
    assert path == "M0 80H100V0M700 80H701"


def test_a_value_that_is_not_known_is_a_hole():
    times = (NOW - 1000, NOW - 990, NOW - 980, NOW - 970)
    path = path_of(TimeSeries(times, {"held": (GB, None, GB, GB)}), last=NOW - 960)
    assert path == "M0 0M20 0H40"


@pytest.mark.parametrize(
    ("most", "top"), [(0, 10), (280, 400), (900_000, 1_000_000), (8_100_000, 10_000_000)]
)
def test_the_scale_of_speeds(most, top):
    assert find_top_speed(most) == top


def test_nothing_known_at_all():
    chart = Chart(
        "c",
        HOSTILE,
        "",
        TimeSeries((NOW,), {"held": (None,)}),
        (Line("held", "held"),),
        NOW - 9,
        NOW,
    )
    assert "nothing was recorded" in draw_chart(chart)
