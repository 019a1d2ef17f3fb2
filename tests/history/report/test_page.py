"""The report's page as text, as tags, and as what may act in it."""

import base64
import hashlib
import json
import re
from dataclasses import replace

import pytest
from history_kit import GB, HOSTILE, MB, NOW, make_snapshot
from report_kit import HOME, make_page, make_period, make_report, read_page, read_text

from mpsbar.history.reader import Period, Run, TimeSeries
from mpsbar.history.report.chart import Chart, Line, draw_chart, find_top, find_top_speed
from mpsbar.history.report.recorded import build_past


def test_the_whole_page_as_text(check_golden):
    check_golden("report.txt", read_text(make_page()))


def test_a_hostile_name_is_text_wherever_it_stands():
    page = make_page()
    reader = read_page(page)
    assert not [tag for tag, _ in reader.tags if tag in ("img", "b", "iframe", "object", "link")]
    assert not [name for _, found in reader.tags for name in found if name.startswith("on")]
    assert not [found for _, found in reader.tags if "style" in found]
    assert page.count("&lt;img src=x onerror") >= 4
    assert "\x1b" not in page and "\u202e" not in page
    assert [tag for tag, _ in reader.tags].count("script") == 1 + 6  # ours, and data of the charts


def test_the_policy_lets_only_our_two_texts_act():
    page = make_page()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    directives = dict(
        part.strip().split(" ", 1) for part in policy.replace("&#x27;", "'").split(";")
    )
    assert directives["default-src"] == "'none'"
    for kind, pattern in (("style", "<style>(.*?)</style>"), ("script", "<script>(.*?)</script>")):
        (content,) = re.findall(pattern, page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert directives[f"{kind}-src"] == f"'sha256-{digest}'"
    assert "http" not in re.sub(r'http-equiv|"http://www.w3.org[^"]*"', "", page)


def test_what_the_script_reads_cannot_end_it():
    lines = (Line("held", "</script><script>alert(1)//"),)
    series = TimeSeries((NOW,), {"held": (GB,)})
    drawn = draw_chart(Chart("c", "t", "", series, lines, NOW - 10, NOW))
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', drawn)
    assert json.loads(data)["lines"][0]["name"] == "</script><script>alert(1)//"


def test_no_private_path_and_no_argument():
    text = make_page()
    assert HOME not in text and "hunter2" not in text and "secret" not in text


def test_without_history_it_says_who_records():
    text = read_text(make_page(make_report(periods=(), probe=None)))
    assert (
        "Nothing has been recorded yet. The menu bar app, mpsbar top and mpsbar status --watch record"
        in text
    )
    assert "dtypes" not in text.split("Diagnostics")[0]


def test_one_span_needs_no_choice():
    page = make_page(make_report(periods=(make_period(),)))
    assert 'type="radio"' not in page


def test_an_empty_computer_has_a_page_too():
    seen = replace(make_snapshot(), workers=(), processes=(), ended=())
    text = read_text(make_page(replace(make_report(periods=(), probe=None), snapshot=seen)))
    assert "You have no PyTorch or MLX processes running" in text


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


def test_the_speed_of_a_run_has_a_chart_of_its_own_where_it_is_known():
    times = (NOW - 20, NOW - 10)
    known = TimeSeries(times, {"held": (GB, GB), "speed": (3_100_000, 900_000)})
    unknown = TimeSeries(times, {"held": (GB, GB), "speed": (None, None)})
    fast, silent = (
        Run(pid, None, name, "mps", True, NOW - 20, NOW, series=series)
        for pid, name, series in ((1, "fast.py", known), (2, "silent.py", unknown))
    )
    page = build_past((Period(NOW - 100, NOW, runs=(fast, silent)),), None, "")
    assert 'aria-label="fast.py: speed: speed 0.9/s to 3.1/s, last 0.9/s"' in page
    assert "<span>4/s</span><span>3/s</span><span>2/s</span><span>1/s</span><span>0</span>" in page
    assert '{"name":"speed","values":[3.1,0.9]}' in page
    assert "<td>3.1/s</td>" in page
    assert "silent.py: speed" not in page


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
