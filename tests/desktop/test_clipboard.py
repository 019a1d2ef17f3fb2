"""The clipboard: macOS's on the double, and real programs in the place of Linux's."""

import os
import signal

import appkit
import pytest
from desktop_kit import StandIn, in_thread

from mpsbar.desktop import clipboard

TEXTS = ["plain", "two\nlines", "🧨 'quotes' \\ $(id)", "", "x" * 300_000]


@pytest.mark.parametrize("text", TEXTS)
def test_on_macos_the_text_is_what_can_be_pasted(text):
    with appkit.installed():
        from AppKit import NSPasteboard, NSPasteboardTypeString

        assert clipboard.copy("before", "darwin")
        assert clipboard.copy(text, "darwin")
        board = NSPasteboard.generalPasteboard()
        assert board.stringForType_(NSPasteboardTypeString) == text


def test_a_lone_surrogate_is_replaced():
    with appkit.installed():
        from AppKit import NSPasteboard, NSPasteboardTypeString

        assert clipboard.copy("a\ud800b", "darwin")
        assert NSPasteboard.generalPasteboard().stringForType_(NSPasteboardTypeString) == "a?b"


def test_the_pasteboard_is_for_the_main_thread():
    with appkit.installed() as mac:
        (problem,) = in_thread(lambda: clipboard.copy("text", "darwin"))
        assert isinstance(problem, appkit.OffMainThreadError)
        mac.take_faults()


@pytest.fixture
def desktop(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(clipboard, "_SECONDS", 120.0)  # a Python may take long to start
    for variable in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("variable", "name", "arguments"),
    [
        ("WAYLAND_DISPLAY", "wl-copy", []),
        ("DISPLAY", "xclip", [b"-selection", b"clipboard"]),
        ("DISPLAY", "xsel", [b"--clipboard", b"--input"]),
    ],
)
@pytest.mark.parametrize("text", TEXTS)
def test_on_linux_a_program_gets_the_text(desktop, monkeypatch, variable, name, arguments, text):
    program = StandIn(desktop, name)
    assert not clipboard.copy(text, "linux")
    monkeypatch.setenv(variable, ":0")
    assert clipboard.copy(text, "linux")
    assert (program.calls, program.inputs) == ([arguments], [text.encode()])


def test_a_program_that_stays_to_serve_the_text_is_not_waited_for(desktop, monkeypatch):
    """As xclip and wl-copy do: the parent ends, the child keeps what it inherited open."""
    monkeypatch.setenv("DISPLAY", ":0")
    program = StandIn(desktop, "xclip", background=True)
    assert clipboard.copy("text", "linux")
    os.killpg(program.pids[0], signal.SIGKILL)


def test_when_one_fails_the_next_is_tried(desktop, monkeypatch):
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("DISPLAY", ":0")
    broken, good = StandIn(desktop, "wl-copy", code=1), StandIn(desktop, "xsel")
    assert clipboard.copy("text", "linux")
    assert len(broken.calls) == len(good.calls) == 1
    good.path.unlink()
    assert not clipboard.copy("text", "linux")
