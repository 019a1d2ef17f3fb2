"""What is said when the history cannot be kept. Pure."""

from mpsbar.model.reason import Reason
from mpsbar.model.text import printable
from mpsbar.views.language import _


def say_history(reason: Reason) -> str:
    words = {
        "history_damaged": _(
            "the history was damaged; it was moved to {file}, and a new one was begun"
        ),
        "history_newer": _("no history is kept: {file} is not ours to change ({error})"),
        "history_not_written": _(
            "no history can be written to {file} ({error}); it is tried again each minute"
        ),
    }.get(reason.code, reason.code)
    told = {key: printable(str(value), 1000) for key, value in reason.values.items()}
    return words.format_map({"file": "?", "error": "?"} | told)
