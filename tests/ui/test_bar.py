"""What stands in the menu bar itself."""

import pytest
from samples import GB, MB, make_snapshot
from ui.menu_kit import worker

from mpsbar.core.findings import Health, Reason
from mpsbar.core.snapshot import Backend, Snapshot
from mpsbar.ui.bar import build_bar
from mpsbar.ui.menu import build_menu


@pytest.mark.parametrize(
    ("shows", "level", "text", "shape"),
    [
        ("memory", "ok", "\u20076.0 GB", "ok"),
        ("memory", "warning", "\u20076.0 GB !", "warning"),
        ("gpu", "ok", "\u200743%", "ok"),
        ("gpu", "critical", "\u200743% ‼", "critical"),
        ("dot", "ok", "●", "ok"),
        ("dot", "warning", "▲", "warning"),
        ("dot", "critical", "■", "critical"),
        ("icon", "ok", "", "ok"),
        ("icon", "critical", "‼", "critical"),
    ],
)
def test_the_bar(shows, level, text, shape):
    reasons = (Reason("pressure", level),) if level != "ok" else ()
    bar = build_bar(make_snapshot(worker(), health=Health(level, reasons)), shows)
    assert (bar.text, bar.shape, bar.is_dot) == (text, shape, shows == "dot")


def test_the_bar_is_as_wide_with_one_number_as_with_another():
    widths = set()
    for driver in (1, 999, 200 * MB, 2 * GB, 99 * GB, 512 * GB):
        backend = Backend("mps", "torch", "in use", 0, driver, driver)
        widths.add(len(build_bar(make_snapshot(worker(backends=(backend,)))).text))
    assert widths == {7}


def test_nobody_connected_is_the_icon_alone_and_unknown_is_no_well():
    assert build_bar(Snapshot(0.0)).text == ""
    blind = Snapshot(0.0, health=Health("ok", (Reason("not_judged", "ok"),)))
    assert (build_bar(blind, "dot").text, build_bar(blind, "dot").shape) == ("○", "unknown")
    assert build_bar(blind, "gpu").text == "\u2007\u2007\u2007?"
    assert build_menu(blind).rows[0].text == "Status unknown"


def test_what_voiceover_says_of_the_bar():
    assert build_bar(make_snapshot(worker())).label == (
        "mpsbar, 1 process connected, 6.0 GB held, GPU 43%, No problems"
    )
