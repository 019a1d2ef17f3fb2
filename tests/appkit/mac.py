"""The person at the Mac: what a test does to the app, and what it sees."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from appkit import session
from appkit.application import SLEEPS, WAKES, NSWorkspace
from appkit.loop import DEFAULT, TRACKING, main_loop
from appkit.menus import NSMenu, NSMenuItem
from appkit.messages import send
from appkit.statusbar import NSStatusBar, NSStatusItem

_MARKS = {1: "✓ ", -1: "– "}
_NAP = 0.02  # how often a condition is looked at anew while other threads work


class NotClickableError(AssertionError):
    """There is no such row, or it is hidden, greyed, a line, or the way into a submenu."""


class Mac:
    """All of it on the main thread. The virtual clock moves in `wait`, and nowhere else."""

    def __init__(self, state: session.Session) -> None:
        self.state = state

    def run(self, start: Callable[[], object], script: Callable[[], object]) -> None:
        """start(): the app's run; script(): what the person does meanwhile, ending with a quit."""
        self.state.script = script
        try:
            start()
        except session.Terminated:
            return
        self.state.check_alive()  # AppHelper prints some exceptions and returns
        raise AssertionError("the app's run returned, but only exit(0) ends it on a Mac")

    def wait(self, seconds: float = 0.0) -> None:
        main_loop()._run_until(self.state.now + seconds)

    def wait_for(self, condition: Callable[[], object], seconds: float = 60) -> None:
        """Real time, for what other threads do; generous for a loaded machine."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"not so within {seconds} s: {condition}")
            main_loop()._wait_for_call(_NAP)

    def answer(
        self, button: str, text: str | None = None, meanwhile: Callable[[], object] | None = None
    ) -> None:
        self.state.answers.append(session.Answer(button, text, meanwhile))

    def item(self) -> NSStatusItem:
        items = NSStatusBar.systemStatusBar()._items
        assert len(items) == 1, f"{len(items)} status items"
        return items[0]

    def bar(self) -> str:
        """The text in the bar."""
        return shown(self.item().button())

    def changes_in_open_menus(self) -> list[str]:
        return self.state.changed_while_open

    def open_menu(self, menu: Any) -> None:
        menu._open()

    def close_menu(self, menu: Any) -> None:
        menu._close()

    @contextmanager
    def menu(self, *path: str) -> Iterator["OpenMenu"]:
        """The menu held open, with the submenus that the titles lead to."""
        assert main_loop().currentMode() == DEFAULT, "no menu opens in this mode"
        opened = OpenMenu(self, self.item().menu())
        with main_loop()._in_mode(TRACKING):
            opened.begin(path)
            try:
                yield opened
            finally:
                if self.state.ended is None:
                    opened.end()
        if opened.chosen is not None:
            _choose(opened.chosen)

    def peek(self) -> None:
        """macOS opens the menu without showing it, for shortcuts, and never says that it closed."""
        self.item().menu()._prepare()

    def click(self, *path: str) -> None:
        with self.menu(*path[:-1]) as menu:
            menu.click(path[-1])

    def announce_sleep(self) -> None:
        """And no more: something called it off."""
        self._post(SLEEPS)

    def sleep(self, seconds: float) -> None:
        """The lid is closed and opened again: no timer fires in between."""
        self._post(SLEEPS)
        self.state.now += seconds
        self._post(WAKES)

    def signal(self, number: int) -> None:
        self.state.signals[number](number)

    def take_faults(self) -> list[str]:
        """What went against Apple's rules so far, as words; taken, it no longer fails the test."""
        found = [f"{type(fault).__name__}: {fault}" for fault in self.state.faults]
        self.state.faults.clear()
        return found

    def _post(self, name: str) -> None:
        workspace = NSWorkspace.sharedWorkspace()
        workspace.notificationCenter().postNotificationName_object_(name, workspace)


class OpenMenu:
    """A menu under the pointer: look, wait, go into a submenu, click.

    Only with AppKit's public names: appkit.real uses it on a real Mac.
    """

    def __init__(self, mac: Any, menu: NSMenu) -> None:
        self.mac = mac
        self.levels = [menu]
        self.chosen: NSMenuItem | None = None

    def begin(self, path: tuple[str, ...]) -> None:
        self.mac.open_menu(self.levels[0])
        for title in path:
            self.enter(title)

    def end(self) -> None:
        while self.levels:
            self.leave()

    def enter(self, title: str) -> None:
        submenu = self.find(title).submenu()
        if submenu is None:
            raise NotClickableError(f"{title!r} has no submenu")
        self.mac.open_menu(submenu)
        self.levels.append(submenu)

    def leave(self) -> None:
        self.mac.close_menu(self.levels.pop())

    def click(self, title: str) -> None:
        """The menu closes when the with-block ends; the action comes after that."""
        item = self.find(title)
        if item.hasSubmenu() or not item.isEnabled():
            raise NotClickableError(f"{title!r} is greyed or leads to a submenu")
        self.chosen = item

    def slide(self, value: float) -> None:
        """The first slider of this level."""
        views = [item.view() for item in self.levels[-1].itemArray()]
        sliders = [view for view in views if view is not None]
        sliders[0].setDoubleValue_(value)
        sliders[0]._act()

    def find(self, title: str) -> NSMenuItem:
        found = [item for item in _visible(self.levels[-1]) if shown(item) == title]
        if len(found) != 1:
            raise NotClickableError(f"{len(found)} rows are called {title!r}: {self.lines()}")
        return found[0]

    def wait(self, seconds: float) -> None:
        self.mac.wait(seconds)

    def ask_again(self) -> None:
        """macOS asks what the menu shows while it is open, for instance to look for a shortcut."""
        from PyObjCTools import AppHelper

        menu = self.levels[0]
        AppHelper.callAfter(lambda: menu.delegate().menuNeedsUpdate_(menu))
        self.wait(0)

    def titles(self) -> list[str]:
        return [shown(item) for item in _visible(self.levels[-1])]

    def lines(self) -> list[str]:
        """The rows one sees: ✓ or – before, ▸ for a submenu, (greyed), ⌘ and the key."""
        return [_line(item) for item in _visible(self.levels[-1])]


def _visible(menu: NSMenu) -> list[NSMenuItem]:
    return [item for item in menu.itemArray() if not item.isHidden() and not item.isAlternate()]


def shown(item: Any) -> str:
    """The text of a menu item or a button; an attributed one is drawn instead of the plain one."""
    attributed = item.attributedTitle()
    return str(item.title() if attributed is None else attributed.string())


def _line(item: NSMenuItem) -> str:
    if item.isSeparatorItem():
        return "─"
    if item.view() is not None:
        return f"[{type(item.view()).__name__}]"
    title = shown(item) if item.isEnabled() else f"({shown(item)})"
    key = f"  ⌘{item.keyEquivalent().upper()}" if item.keyEquivalent() else ""
    way_in = "  ▸" if item.hasSubmenu() else ""
    return f"{'  ' * item.indentationLevel()}{_MARKS.get(item.state(), '')}{title}{key}{way_in}"


def _choose(item: Any) -> None:
    """On some Macs the action comes while the menu still fades: no alert may open in it."""
    now = session.current()
    now.in_action = True
    try:
        send(item.target(), item.action(), item)
    finally:
        now.in_action = False
