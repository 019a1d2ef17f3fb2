"""Memory over time in the report: which charts a run has."""

from history_kit import GB, NOW

from mpsbar.history.period import Period, Run, TimeSeries
from mpsbar.history.report.charts import build_charts


def test_the_speed_of_a_run_has_a_chart_of_its_own_where_it_is_known():
    times = (NOW - 20, NOW - 10)
    known = TimeSeries(times, {"held": (GB, GB), "speed": (3_100_000, 900_000)})
    unknown = TimeSeries(times, {"held": (GB, GB), "speed": (None, None)})
    fast, silent = (
        Run(pid, name, "mps", True, NOW - 20, NOW, series=series)
        for pid, name, series in ((1, "fast.py", known), (2, "silent.py", unknown))
    )
    page = build_charts((Period(NOW - 100, NOW, runs=(fast, silent)),), None, "")
    assert 'aria-label="fast.py: speed: speed 0.9/s to 3.1/s, last 0.9/s"' in page
    assert "<span>4/s</span><span>3/s</span><span>2/s</span><span>1/s</span><span>0</span>" in page
    assert '{"name":"speed","values":[3.1,0.9]}' in page
    assert "<td>3.1/s</td>" in page
    assert "silent.py: speed" not in page
