"""Every AppKit name and selector in our sources exists and is not deprecated before macOS 13."""

from pathlib import Path

import pytest
from apple_api import EXCEPTIONS, find_uses, judge, read_uses

PACKAGE = Path(__file__).parents[1] / "mpsbar"


def test_our_sources_say_only_what_apple_has():
    uses = find_uses(PACKAGE)
    assert [problem for use in uses if (problem := judge(use))] == []


def test_the_check_really_reads_them():
    uses = find_uses(PACKAGE)
    names = {use.name for use in uses}
    known = {"NSImageRep", "setAttributedTitle_", "setDelegate_", "runModal", "mainAppService"}
    assert known <= names
    later = "initWithFireDate_interval_target_selector_userInfo_repeats_"
    assert {"SMAppService", "UNUserNotificationCenter", later} <= names
    assert len(uses) > 100


def test_each_exception_is_still_needed():
    names = {use.name for use in find_uses(PACKAGE)}
    assert set(EXCEPTIONS) <= names


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("from AppKit import NSMenuItm", "x.py:1 NSMenuItm: Apple has no such name"),
        (
            "from ServiceManagement import SMAppServiceStatusEnabledd",
            "x.py:1 SMAppServiceStatusEnabledd: Apple has no such name",
        ),
        ("item.setAttributedTitel_(x)", "x.py:1 setAttributedTitel_: Apple has no such selector"),
        ("button.imagePositionn()", "x.py:1 imagePositionn: Apple has no such selector"),
        ("item.setTitle_()", "x.py:1 setTitle_: takes 1 arguments, gets 0"),
        ("item.setHighlightMode_(1)", "x.py:1 setHighlightMode_: deprecated since macOS 10.14"),
        ("item.setSubtitle_('x')", None),  # UNMutableNotificationContent has it, too
        ("item.setBadge_(b)", None),
        ("menu.setPresentationStyle_(0)", "x.py:1 setPresentationStyle_: only from macOS 14.0 on"),
        ("make = timer.initWithFireDat_interval_", "x.py:1 initWithFireDat_interval_: Apple has no such selector"),
        ("item.setTitle_('x'); menu.snake_case(); thing.plain()", None),
    ],
)  # fmt: skip
def test_planted_mistakes_are_found(source, problem):
    found = [words for use in read_uses(source, "x.py") if (words := judge(use))]
    assert found == ([problem] if problem else [])
