"""Copies text to the clipboard."""

import os
import shutil
import sys

from mpsbar.desktop.programs import run_command

_SECONDS = 5.0
# The variable that the session must have, the program, its arguments.
_PROGRAMS = (
    ("WAYLAND_DISPLAY", "wl-copy", ()),
    ("DISPLAY", "xclip", ("-selection", "clipboard")),
    ("DISPLAY", "xsel", ("--clipboard", "--input")),
)


def copy(text: str, platform: str = sys.platform) -> bool:
    """Returns whether it was copied. macOS: main thread only; elsewhere it may take seconds."""
    content = text.encode("utf-8", "replace")
    return (
        _copy_macos(content.decode("utf-8")) if platform == "darwin" else _copy_by_program(content)
    )


def _copy_macos(text: str) -> bool:
    from AppKit import NSPasteboard, NSPasteboardTypeString

    board = NSPasteboard.generalPasteboard()
    board.clearContents()
    return bool(board.setString_forType_(text, NSPasteboardTypeString))


def _copy_by_program(content: bytes) -> bool:
    for variable, name, arguments in _PROGRAMS:
        program = shutil.which(name) if os.environ.get(variable) else None
        if program is None:
            continue
        command = [os.fsencode(argument) for argument in (program, *arguments)]
        if run_command(command, content, _SECONDS) is None:
            return True
    return False
