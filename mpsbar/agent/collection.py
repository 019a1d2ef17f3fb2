"""gc.collect() on the host's main thread, where that is safe."""

import gc
import os
import sys
from typing import Any, Optional

from .host_exceptions import raised_by_host

# (module, name for people) of what makes windows. Their objects may end only on the thread and at
# the moment that the program chose: PySide6 crashes when a widget ends during one of its
# own calls, Tcl aborts when an interpreter ends on another thread. We come between any two
# bytecodes of main, so beside them there is no collection by us, used or only imported.
_GUI_TOOLKITS = (
    ("PySide6", "PySide6"),
    ("PySide2", "PySide2"),
    ("PyQt6", "PyQt6"),
    ("PyQt5", "PyQt5"),
    ("_tkinter", "Tk"),
    ("wx", "wxPython"),
    ("gi", "PyGObject"),
    ("AppKit", "AppKit"),
    ("kivy", "Kivy"),
    ("pyglet", "pyglet"),
)


def find_gui_toolkit() -> Optional[str]:
    """Returns the first toolkit that this process has imported; None where gc.collect() is safe."""
    return next((name for module, name in _GUI_TOOLKITS if module in sys.modules), None)


def collect_on_main() -> None:
    """Calls gc.collect(), but loses nothing of the host's that is raised inside a finalizer.

    Python hands the exceptions of finalizers to sys.unraisablehook and goes on; a Ctrl-C, what a
    signal handler raised and what another thread sent must still reach the host.
    """
    usual = sys.unraisablehook
    here = os.getpid()
    lost: list[BaseException] = []

    def keep(unraisable: Any) -> None:
        if os.getpid() == here and raised_by_host(unraisable.exc_value):
            lost.append(unraisable.exc_value)
        else:
            usual(unraisable)

    sys.unraisablehook = keep
    try:
        gc.collect()
    finally:
        if sys.unraisablehook is keep:
            sys.unraisablehook = usual
    if lost:
        raise lost[0]
