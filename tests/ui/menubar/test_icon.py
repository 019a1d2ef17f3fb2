"""The icon in the menu bar and the text beside it, on the double of AppKit."""

import pytest
from samples import make_snapshot, make_training
from ui.menubar_kit import play

from mpsbar.core.findings import Health, Reason


def test_the_dot_and_the_icon_have_the_shape_of_the_health(mac):
    sick = Health("critical", (Reason("pressure", "critical"),))

    def person(user):
        healthy = mac.item().button().image()
        user.show(make_snapshot(make_training(), health=sick))
        assert mac.bar() == " \u20076.0 GB ‼"
        assert mac.item().button().image() is not healthy
        assert user.lines()[0] == "(Memory pressure is critical)"
        user.click("Settings", "Menu Bar Shows", "Dot Only")
        assert (mac.bar(), mac.item().button().image()) == ("■", None)
        user.click("Settings", "Menu Bar Shows", "Icon Only")
        assert mac.bar() == " ‼"

    play(mac, make_snapshot(make_training()), person)


@pytest.mark.parametrize(("has_room", "doubt"), [(True, None), (False, "not_visible")])
def test_the_app_looks_whether_its_icon_is_drawn(mac, caplog, has_room, doubt):
    """And writes it into the log, for who sees none."""
    caplog.set_level("INFO", "mpsbar")
    from mpsbar.desktop.icon_visibility import read_icon

    mac.state.bar_has_room = has_room

    def person(user):
        assert read_icon() is None
        mac.wait(3.1)
        mac.wait_for(read_icon)
        assert read_icon().doubt == doubt
        (line,) = [each for each in caplog.records if each.message.startswith("icon ")]
        assert line.message == read_icon().details
        assert line.levelname == ("INFO" if doubt is None else "WARNING")

    play(mac, make_snapshot(), person)


def test_tooltips_and_the_place_in_the_bar(mac):
    def person(user):
        assert mac.item().autosaveName() == "mpsbar"
        assert mac.item().button().toolTip() == "No problems"
        with user.open("train.py") as menu:
            assert menu.find("Free Cache").toolTip().startswith("Pauses the process briefly")

    play(mac, make_snapshot(make_training()), person)


def test_digits_of_one_width_and_a_dot_with_a_colour(mac):
    from AppKit import (
        NSColor,
        NSFontAttributeName,
        NSForegroundColorAttributeName,
        NSParagraphStyleAttributeName,
    )

    def attributes(text):
        ((_, _, found),) = text._runs
        return found

    def person(user):
        button = mac.item().button()
        seen = attributes(button.attributedTitle())
        assert seen[NSFontAttributeName].fontName().endswith("digits")
        with user.open() as menu:
            row = attributes(
                menu.find("train.py\tmps\t6.0 GB\t━────\tcached 3.0 GB").attributedTitle()
            )
        assert row[NSFontAttributeName].fontName().endswith("digits")
        assert len(row[NSParagraphStyleAttributeName].tabStops()) == 4
        user.click("Settings", "Menu Bar Shows", "Dot Only")
        dot = attributes(button.attributedTitle())
        assert vars(dot[NSForegroundColorAttributeName]) == vars(NSColor.systemGreenColor())

    play(mac, make_snapshot(make_training()), person)


def make_icon(points=18.0, files=("icon", "icon@2x"), template=True, set_points=True):
    from AppKit import NSImage, NSImageRep, NSMakeSize

    from mpsbar.system.paths import resource

    image = NSImage.alloc().initWithSize_(NSMakeSize(points, points))
    for name in files:
        picture = NSImageRep.imageRepWithContentsOfFile_(str(resource(f"{name}.png")))
        if set_points:
            picture.setSize_(NSMakeSize(points, points))
        image.addRepresentation_(picture)
    image.setTemplate_(template)
    return image


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"points": 36.0}, "points, where at most"),
        ({"points": 0.0}, "points, where at most"),
        ({"template": False}, "no template"),
        ({"set_points": False}, r"representations of \[\(36.0, 36.0\)\]"),
        ({"files": ("icon",)}, r"no representation for scale \[2\]"),
    ],
)
def test_the_double_refuses_an_icon_that_would_not_fit(mac, fault, words):
    """A Mac would draw it, and only a person would see that it is wrong."""
    from AppKit import NSStatusBar

    button = NSStatusBar.systemStatusBar().statusItemWithLength_(-1.0).button()
    button.setImage_(make_icon())
    state = mac.state
    with pytest.raises(ValueError, match=words):
        button.setImage_(make_icon(**fault))
    state.faults.clear()


@pytest.mark.parametrize("name", ["icon", "icon-warning", "icon-critical"])
def test_every_icon_fits_the_bar(mac, name):
    from AppKit import NSStatusBar

    from mpsbar.ui.menubar.icon import read_template

    NSStatusBar.systemStatusBar().statusItemWithLength_(-1.0).button().setImage_(
        read_template(name)
    )
