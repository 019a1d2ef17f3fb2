"""The state of one pretended Mac: its clock, its single objects, what it was asked and what went wrong."""

import collections
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
START = 1_800_000_000.0  # the virtual clock's first second, since 1970
NOWHERE = ((0.0, 0.0), (0.0, 0.0))
_current: list["Session"] = []


def current() -> "Session":
    if not _current:
        raise RuntimeError("the AppKit double is used outside appkit.installed()")
    return _current[-1]


def is_open() -> bool:
    return bool(_current)


def begin(session: "Session") -> None:
    if _current:
        raise RuntimeError("one AppKit double at a time")
    _current.append(session)


def end() -> None:
    _current.pop()


class Ended(BaseException):
    """The process is no more, or will never come back. No `except Exception` may live through it."""


class Terminated(Ended):
    """NSApplication's terminate: it calls exit(0), nothing after it runs."""


class Hangs(Ended):
    """A modal alert that nobody answers: on a Mac the main thread stays there."""


class Aborted(Ended):
    """The framework ends the process, and no Python code can prevent it."""


class OffMainThreadError(RuntimeError):
    """AppKit was called on another thread than the main one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person will do with the next alert."""

    button: str
    text: str | None = None
    meanwhile: Callable[[], object] | None = None


@dataclass(slots=True)
class Session:
    home: Path
    macos: tuple[int, ...]
    bundle: str | None  # the bundle identifier; None: a bare Python
    info: dict[str, Any] = field(default_factory=dict)  # its Info.plist
    now: float = START
    main: int = field(default_factory=threading.get_ident)
    single: dict[Any, Any] = field(default_factory=dict)
    faults: list[Exception] = field(default_factory=list)
    ended: BaseException | None = None
    in_action: bool = False  # the action of a menu item runs: the menu may not have closed yet
    script: Callable[[], object] | None = None
    answers: collections.deque[Answer] = field(default_factory=collections.deque)
    class_names: set[str] = field(default_factory=set)
    signals: dict[int, Any] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    open_menus: list[Any] = field(default_factory=list)
    changed_while_open: list[str] = field(default_factory=list)
    alerts: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    applications: dict[str, str] = field(default_factory=dict)  # bundle identifier -> path
    bar_has_room: bool = True
    icon_frame: Any = ((1200.0, 950.0), (60.0, 24.0))  # where the bar has put the status item
    # Of each screen its frame, how high its notch is, and the areas left and right of that.
    screens: list[Any] = field(
        default_factory=lambda: [(((0.0, 0.0), (1512.0, 982.0)), 0.0, NOWHERE, NOWHERE)]
    )
    low_power: bool = False
    activities: list[int] = field(default_factory=list)  # NSActivityOptions of those under way
    # UserNotifications
    # allowed; denied: by the person; unsigned: macOS refuses, and has never asked the person
    notifications: str = "allowed"
    shown: list[tuple[str, int]] = field(default_factory=list)  # title, how the delegate wants it
    delivered: list[Any] = field(default_factory=list)
    background: collections.deque[Callable[[], object]] = field(default_factory=collections.deque)
    # ServiceManagement: SMAppServiceStatus, and what a registration leads to
    login_status: int = 3
    login_after_register: int = 1
    legacy_login_status: int = 1  # of a LaunchAgent that the user may have switched off

    def fault(self, error: Exception) -> NoReturn:
        """Raise, and remember: rumps prints what its callbacks raise, threads swallow it."""
        self.faults.append(error)
        raise error

    def end_with(self, reason: BaseException) -> NoReturn:
        self.ended = reason
        raise reason

    def check_alive(self) -> None:
        if self.ended is not None:
            raise self.ended

    def only(self, key: Any, make: Callable[[], T]) -> T:
        if key not in self.single:
            self.single[key] = make()
        found: T = self.single[key]
        return found

    def is_main(self) -> bool:
        return threading.get_ident() == self.main
