"""May an icon be drawn, and is it? CoreGraphics as a small library in C, AppKit as the double."""

import ctypes
import ctypes.util
import shutil
import subprocess
import sys

import appkit
import pytest

from mpsbar.desktop import icon_visibility
from mpsbar.desktop.icon_visibility import Screen, Visibility

# A pointer beyond 32 bits, so that a forgotten restype cuts it and the release is of another.
SESSION_C = """
#include <stdint.h>
#include <stddef.h>
static int held, wrong;
static void *const dictionary = (void *)0x7fee12345678;
#ifdef HEADLESS
void *CGSessionCopyCurrentDictionary(void) { return NULL; }
#else
void *CGSessionCopyCurrentDictionary(void) { held++; return dictionary; }
#endif
void CFRelease(void *object) { if (object == dictionary) held--; else wrong++; }
int count_held(void) { return held; }
int count_wrong(void) { return wrong; }
"""


@pytest.fixture
def build(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")

    def make(*options):
        source, library = tmp_path / "session.c", tmp_path / f"session{len(options)}.so"
        source.write_text(SESSION_C)
        subprocess.run(["cc", "-shared", "-fPIC", *options, "-o", library, source], check=True)
        return str(library)

    return make


def test_a_session_is_found_and_released(build):
    library = build()
    counts = ctypes.CDLL(library)
    for _ in range(3):
        assert icon_visibility.has_gui_session(library, library) is True
    assert (counts.count_held(), counts.count_wrong()) == (0, 0)


def test_no_session_is_found_and_nothing_released(build):
    library = build("-DHEADLESS")
    assert icon_visibility.has_gui_session(library, library) is False
    assert ctypes.CDLL(library).count_wrong() == 0


def test_what_cannot_be_asked_is_unknown(build):
    assert icon_visibility.has_gui_session("/none/CoreGraphics", "/none/CoreFoundation") is None
    assert icon_visibility.has_gui_session(ctypes.util.find_library("c"), build()) is None


FRAMEWORK, STATIC = "Python", ""


@pytest.mark.parametrize(
    ("version", "framework", "bundle", "reason"),
    [
        ((26, 6, 2), FRAMEWORK, None, "framework_python"),
        ((16, 0), FRAMEWORK, None, "framework_python"),
        ((27,), FRAMEWORK, "org.python.python", "framework_python"),
        ((26, 6, 2), FRAMEWORK, "org.example.mpsbar", None),
        ((26, 6, 2), STATIC, None, None),
        ((15, 7), FRAMEWORK, None, None),
        ((13,), FRAMEWORK, None, None),
    ],
)
def test_which_python_draws_no_icon(monkeypatch, version, framework, bundle, reason):
    monkeypatch.setattr(sys, "_framework", framework, raising=False)
    with appkit.installed(bundle=bundle):
        assert icon_visibility.draws_no_icon(version) == reason
        text = ".".join(map(str, version))
        monkeypatch.setattr(
            icon_visibility.platform, "mac_ver", lambda: (text, ("", "", ""), "arm64")
        )
        assert icon_visibility.draws_no_icon() == reason


def test_elsewhere_there_is_no_such_reason():
    assert icon_visibility.draws_no_icon() is None


def icon():
    from AppKit import NSStatusBar

    return NSStatusBar.systemStatusBar().statusItemWithLength_(-1)


PLAIN = (((0.0, 0.0), (1920.0, 1080.0)), 0.0, ((0.0, 0.0), (0.0, 0.0)), ((0.0, 0.0), (0.0, 0.0)))
NOTCHED = (
    ((0.0, 0.0), (1512.0, 982.0)), 32.0,
    ((0.0, 950.0), (663.0, 32.0)), ((848.0, 950.0), (664.0, 32.0)),
)  # fmt: skip


def test_an_icon_that_is_seen():
    with appkit.installed() as mac:
        mac.state.screens = [NOTCHED, PLAIN]
        seen = icon_visibility.check_icon(icon())
    assert seen == Visibility(
        is_on=True, visible=True, occluded=False, left=1200.0, width=60.0, behind_notch=False,
        screens=(Screen(1512.0, 982.0, 664.0), Screen(1920.0, 1080.0)),
    )  # fmt: skip
    assert seen.doubt is None
    assert str(seen) == (
        "icon fine: on=True visible=True occluded=False left=1200.0 width=60.0;"
        " screens: 1512x982 notch, 664 right of it, 1920x1080"
    )


def test_an_icon_for_which_the_bar_has_no_room():
    with appkit.installed() as mac:
        mac.state.bar_has_room = False
        seen = icon_visibility.check_icon(icon())
    assert (seen.is_on, seen.visible, seen.occluded, seen.doubt) == (
        True,
        False,
        True,
        "not_visible",
    )


@pytest.mark.parametrize(
    ("left", "width", "doubt"),
    [(700.0, 60.0, "behind_notch"), (820.0, 60.0, "behind_notch"), (848.0, 60.0, None),
     (600.0, 63.0, None), (600.0, 70.0, "behind_notch"), (900.0, 0.0, "no_width")],
)  # fmt: skip
def test_an_icon_near_the_notch(left, width, doubt):
    with appkit.installed() as mac:
        mac.state.screens = [NOTCHED]
        mac.state.icon_frame = ((left, 950.0), (width, 32.0))
        assert icon_visibility.check_icon(icon()).doubt == doubt


def test_an_icon_without_a_window_or_a_screen():
    with appkit.installed() as mac:
        made = icon()
        mac.state.screens = []
        assert icon_visibility.check_icon(made).behind_notch is False
        made._button._window = None
        seen = icon_visibility.check_icon(made)
        assert (seen.doubt, seen.screens) == ("not_made", ())
        made._button = None
        assert icon_visibility.check_icon(made).doubt == "not_made"


def test_occlusion_alone_is_the_least_of_doubts():
    assert (
        Visibility(visible=True, occluded=True, width=9.0, behind_notch=False).doubt == "occluded"
    )
