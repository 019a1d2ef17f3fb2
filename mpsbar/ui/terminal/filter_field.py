"""The field in which a person types what rows must contain: one for both screens of `top`."""

import asyncio
import contextlib

from textual.binding import Binding
from textual.widgets import Input

from mpsbar.language import _

_MOST_LETTERS = 60
_LONGEST_TYPING = 1.0  # seconds until letters that were typed are in the field
# Before the field gets them, or of "/text, Enter, f" typed fast the f would reach the field.
LEAVING_BINDINGS = [
    Binding(key, f"leave_filter({key == 'escape'})", show=False, priority=True)
    for key in ("enter", "up", "down", "escape")
]


class FilterField(Input):
    """Hidden until it is opened; stays as long as there is a text in it."""

    def __init__(self) -> None:
        super().__init__(
            id="filter", placeholder=_("filter: Enter keeps it, Esc shows all"),
            max_length=_MOST_LETTERS, compact=True, select_on_focus=False,
        )  # fmt: skip
        self.display = False

    def open(self) -> None:
        self.display = True
        # At once: `focus()` waits its turn, and the next keys would be lost.
        self.screen.set_focus(self)

    def close(self) -> None:
        self.value = ""
        self.display = False

    async def wait_typed(self) -> None:
        """Until the letters that were typed before are in the field."""
        typed = asyncio.Event()
        self.call_later(typed.set)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(typed.wait(), _LONGEST_TYPING)
