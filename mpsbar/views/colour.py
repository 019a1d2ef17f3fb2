"""Colour for terminals: never the only sign of anything. Pure."""

from collections.abc import Callable

Paint = Callable[[str, str], str]

_CODES = {"ok": "32", "warning": "33", "critical": "31;1", "head": "1", "dim": "2"}


def paint(text: str, style: str) -> str:
    """The 16 colours every terminal has; the user's own theme decides how they look."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if style in _CODES and text.strip() else text


def plain(text: str, style: str) -> str:  # noqa: ARG001 - the shape of paint
    return text
