"""Why there is no menu bar, icon, terminal or history here, and what to do instead. Pure."""

import shlex

from mpsbar.core.findings import Reason
from mpsbar.core.naming import printable
from mpsbar.language import _
from mpsbar.ui.text.wording import UNKNOWN


def is_running(pid: int | None) -> str:
    who = "" if pid is None else _(" (PID {pid})").format(pid=pid)
    return _("already running{who}: look for its hexagon icon in the menu bar").format(who=who)


def no_rumps(problem: str) -> str:
    return _(
        "the menu bar requires rumps and PyObjC ({problem}): "
        "uv tool install --reinstall --managed-python --python 3.13 '.[terminal]' in a checkout of "
        "mpsbar"
    ).format(problem=problem)


def no_prometheus(module: str) -> str:
    return _("{module} is not installed here: pip install prometheus-client").format(module=module)


def why_no_terminal(why: str, tool: str, python: str) -> str:
    """One line, with the command to install what is missing."""
    if why == "no_terminal":
        return _("top needs a terminal. Showing status instead:")
    command = {
        "uv": _("uv tool install --reinstall '.[terminal]' in a checkout of mpsbar"),
        "pipx": "pipx inject mpsbar textual",
        "pip": f"{shlex.quote(python)} -m pip install textual",
    }[tool]
    return _("the live view needs textual: {command}. Showing status instead:").format(
        command=command
    )


def say_history(reason: Reason) -> str:
    words = {
        "history_damaged": _(
            "the history was damaged; it was moved to {file}, and a new one was started"
        ),
        "history_newer": _("not recording history: {file} was left unchanged ({error})"),
        "history_not_written": _(
            "couldn't write history to {file} ({error}); trying again every minute"
        ),
        "history_rows_left_out": _(
            "{count} rows were left out of the history: a process reported impossible numbers"
        ),
    }.get(reason.code, reason.code)
    values = {key: printable(str(value), 1000) for key, value in reason.values.items()}
    return words.format_map({"file": UNKNOWN, "error": UNKNOWN, "count": UNKNOWN} | values)


def say_no_icon(reason: str) -> str:
    """One line for a person who started `mpsbar` in a terminal."""
    if reason == "framework_python":
        return _(
            "macOS 26 and later show no menu bar icon for this kind of Python (Homebrew, "
            "python.org): use mpsbar.app, or uv tool install --managed-python --python 3.13 "
            "'.[terminal]' in a checkout of mpsbar"
        )
    return _("Can't show an icon in the menu bar here ({reason})").format(reason=reason)


def say_doubt(doubt: str | None) -> str:
    """Says what is wrong with the menu bar icon; empty if nothing is."""
    return {
        None: "",
        "not_made": _("Couldn't create the menu bar icon"),
        "not_visible": _(
            "The menu bar icon is not shown: check that mpsbar is allowed in System Settings > "
            "Menu Bar, or make room by quitting other apps with menu bar icons"
        ),
        "no_width": _("The menu bar icon has no width: restart mpsbar"),
        "behind_notch": _(
            "The menu bar icon is behind the notch: quit other apps with menu bar icons"
        ),
        "occluded": _("The menu bar icon may be covered"),
    }.get(doubt, _("The menu bar icon: {doubt}").format(doubt=doubt))
