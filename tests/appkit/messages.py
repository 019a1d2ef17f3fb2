"""Messages: how they are named, sent and found, and PyObjC's marks on the methods that answer them."""

from typing import Any

from appkit import session


class error(Exception):  # noqa: N801, N818 - its name in PyObjC
    """An NSException."""


class BadPrototypeError(TypeError):
    """A method whose arguments do not fit its selector."""


class python_method:  # noqa: N801 - its name in PyObjC
    """Marks a method of an Objective-C class as plain Python."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped


class selector:  # noqa: N801 - its name in PyObjC
    """A method with an explicit selector or signature; only the method is used."""

    def __init__(
        self,
        function: Any,
        selector: bytes | None = None,
        signature: bytes = b"",
        isClassMethod: bool = False,  # noqa: N803
    ) -> None:
        if selector is not None and python_name(selector) != function.__name__:
            raise NotImplementedError("the double takes selectors that follow the method's name")
        self.function = classmethod(function) if isClassMethod else function


def selector_name(selector: Any) -> str:
    """'callback:' of a string, of bytes, or of the method that PyObjC takes instead."""
    if isinstance(selector, bytes):
        return selector.decode("ascii")
    return selector if isinstance(selector, str) else selector.__name__.replace("_", ":")


def python_name(selector: Any) -> str:
    return selector_name(selector).replace(":", "_")


def send(target: Any, selector: Any, *arguments: Any) -> Any:
    """The message as Objective-C sends it: found by name, with as many arguments as colons."""
    name = selector_name(selector)
    if not responds(target, selector):
        session.current().fault(error(f"{target!r} {name}: unrecognized selector"))
    return getattr(target, python_name(selector))(*arguments[: name.count(":")])


def responds(target: Any, selector: Any) -> bool:
    """Has it the method, on this macOS?"""
    name = python_name(selector)
    owner = target if isinstance(target, type) else type(target)
    found = next((vars(base)[name] for base in owner.__mro__ if name in vars(base)), None)
    if isinstance(found, Since):
        return session.current().macos >= found.since
    return found is not None


def tell(target: Any, selector: str, *arguments: Any) -> Any:
    """To a delegate: only if it has the method."""
    return send(target, selector, *arguments) if responds(target, selector) else None


class Since:
    """A method that came with a later macOS than our oldest: before that it does not exist."""

    def __init__(self, since: tuple[int, ...], method: Any, label: str) -> None:
        self.since, self.method, self.label = since, method, label

    def __get__(self, instance: Any, owner: type) -> Any:
        if session.is_open() and session.current().macos < self.since:
            raise AttributeError(self.label)  # Python then asks __getattr__, which tells why
        return self.method.__get__(instance, owner)
