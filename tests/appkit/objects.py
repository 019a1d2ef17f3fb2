"""NSObject, the root of all, and the properties that only keep a value."""

# ruff: noqa: N802 - the names are Objective-C's

import weakref
from collections.abc import Callable
from typing import Any

from appkit import session
from appkit.classes import ObjCClass, missing
from appkit.messages import error, responds, send


class NSObject(metaclass=ObjCClass, framework="Foundation"):
    """The root. State of the double lies in attributes with a leading underscore."""

    def __getattr__(self, name: str) -> Any:
        return missing(type(self), "-", name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and "framework" in vars(type(self)):
            owner = type(self).__name__
            session.current().fault(AttributeError(f"{owner} has no Python attribute {name}"))
        object.__setattr__(self, name, value)

    def _setup(self) -> None:
        """The double's own state, made by alloc."""

    @classmethod
    def alloc(cls) -> Any:
        made = cls.__new__(cls)
        made._setup()
        return made

    @classmethod
    def new(cls) -> Any:
        return cls.alloc().init()

    def init(self) -> Any:
        return self

    def respondsToSelector_(self, selector: Any) -> bool:
        return responds(self, selector)

    def isKindOfClass_(self, cls: type) -> bool:
        return isinstance(self, cls)

    def isEqual_(self, other: Any) -> bool:
        return self is other

    def description(self) -> str:
        return f"<{type(self).__name__}>"

    def performSelector_withObject_(self, selector: Any, argument: Any) -> Any:
        return send(self, selector, argument)

    def performSelectorOnMainThread_withObject_waitUntilDone_(
        self, selector: Any, argument: Any, wait: bool
    ) -> None:
        from appkit.loop import main_loop

        main_loop()._perform(lambda: send(self, selector, argument), wait)

    def performSelector_withObject_afterDelay_(
        self, selector: Any, argument: Any, delay: float
    ) -> None:
        from appkit.loop import NSRunLoop

        NSRunLoop.currentRunLoop()._later(lambda: send(self, selector, argument), delay)


def stored(name: str, start: Any = None, accepts: Callable[[Any], bool] | None = None) -> Any:
    """A getter and a setter that only keep a value: `title, setTitle_ = stored("title", "")`."""
    slot = f"_{name}"

    def getter(self: Any) -> Any:
        return self.__dict__.get(slot, start)

    def setter(self: Any, value: Any) -> None:
        if accepts is not None and not accepts(value):
            problem = error(f"{type(self).__name__} {name}: invalid parameter {value!r}")
            session.current().fault(problem)
        self.__dict__[slot] = value

    return getter, setter


def weak(name: str) -> Any:
    """A getter and a setter for what AppKit does not keep alive: gone with its last Python name.

    A real Mac would send to freed memory here, or to nil.
    """
    slot = f"_{name}"

    def getter(self: Any) -> Any:
        kept = self.__dict__.get(slot)
        return kept() if isinstance(kept, weakref.ref) else kept

    def setter(self: Any, value: Any) -> None:
        is_object = isinstance(value, NSObject)
        self.__dict__[slot] = weakref.ref(value) if is_object else value

    return getter, setter


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_text_or_nil(value: Any) -> bool:
    return value is None or isinstance(value, str)
