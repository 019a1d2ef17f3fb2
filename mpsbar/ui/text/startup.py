"""Why there is no menu bar, icon, terminal or history here, and what to do instead. Pure."""

import shlex

from mpsbar.core.findings import Reason
from mpsbar.core.naming import printable
from mpsbar.ui.text.wording import _


def is_running(pid: int | None) -> str:
    who = "" if pid is None else _(" (process {pid})").format(pid=pid)
    return _("it is running already{who}: look for its hexagon in the menu bar").format(who=who)


def no_rumps(problem: str) -> str:
    return _(
        "the menu bar needs rumps and PyObjC ({problem}): pip install --upgrade mpsbar"
    ).format(problem=problem)


def why_no_terminal(why: str, tool: str, python: str) -> str:
    """One line; with the one command that helps, where one does."""
    if why == "no_terminal":
        return _("top needs a terminal, which this is not. One look instead:")
    package = "'mpsbar[terminal]'"
    command = {
        "uv": f"uv tool install {package}",
        "pipx": "pipx inject mpsbar textual",
        "pip": f"{shlex.quote(python)} -m pip install {package}",
    }[tool]
    return _("live in the terminal needs textual: {command}. One look instead:").format(
        command=command
    )


def say_history(reason: Reason) -> str:
    words = {
        "history_damaged": _(
            "the history was damaged; it was moved to {file}, and a new one was begun"
        ),
        "history_newer": _("no history is kept: {file} is not ours to change ({error})"),
        "history_not_written": _(
            "no history can be written to {file} ({error}); it is tried again each minute"
        ),
        "history_rows_left_out": _(
            "{count} rows were left out of the history: a process reported impossible numbers"
        ),
    }.get(reason.code, reason.code)
    told = {key: printable(str(value), 1000) for key, value in reason.values.items()}
    return words.format_map({"file": "?", "error": "?", "count": "?"} | told)


def say_no_icon(reason: str) -> str:
    """One line for a person who started `mpsbar` in a terminal."""
    if reason == "framework_python":
        return _(
            "macOS 26 and newer draw no menu bar icon for this kind of Python (Homebrew,"
            " python.org): use mpsbar.app, or uv tool install --managed-python mpsbar"
        )
    return _("No icon can be drawn in the menu bar here ({reason})").format(reason=reason)


def say_doubt(doubt: str | None) -> str:
    """What the visibility probe found; empty when all is well."""
    return {
        None: "",
        "not_made": _("The menu bar icon could not be made"),
        "not_visible": _(
            "The menu bar icon is not shown: look in System Settings > Menu Bar whether mpsbar"
            " is allowed there, or make room by quitting other apps with icons"
        ),
        "no_width": _("The menu bar icon has no width: start mpsbar again"),
        "behind_notch": _("The menu bar icon is behind the notch: quit other apps with icons"),
        "occluded": _("The menu bar icon may be covered by something"),
    }.get(doubt, _("The menu bar icon: {doubt}").format(doubt=doubt))
