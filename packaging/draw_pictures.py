"""Draws the README's pictures of the open menu: python packaging/draw_pictures.py [FOLDER]

They are drawn by hand when the menu has changed, and committed.
"""

import sys
from pathlib import Path

from chromium import draw_page, require_chromium
from menu_page import build_page, measure_page

from mpsbar.monitor import Monitor
from mpsbar.system.replay import RecordedComputer, read_recording
from mpsbar.ui.menu import build_menu
from mpsbar.ui.rows import Menu, UiState

DOCS = Path(__file__).parents[1] / "docs"
RECORDING = "m1max-64gb"
CAPTION = "A drawing of the menu, not a screenshot: a recorded M1 Max with made-up workers"
APPEARANCES = ("light", "dark")
SCALE = 2


def read_menu() -> Menu:
    """The menu that the app would show on that machine."""
    monitor = Monitor(RecordedComputer(read_recording(RECORDING)))
    try:
        return build_menu(monitor.read_once(), UiState(is_app=True, login="on"))
    finally:
        monitor.close()


def draw_pictures(program: str, menu: Menu) -> dict[str, bytes]:
    """PNGs by file name; the first row with a submenu is open."""
    opened = next((row.key for row in menu.rows if row.children), "")
    return {
        f"menu-{appearance}.png": draw_page(
            program, build_page(menu, appearance, opened, CAPTION), measure_page(menu), SCALE
        )
        for appearance in APPEARANCES
    }


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS
    program = require_chromium()
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in draw_pictures(program, read_menu()).items():
        (folder / name).write_bytes(picture)
        print(f"drawn: {folder / name}")


if __name__ == "__main__":
    main()
