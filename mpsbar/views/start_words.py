"""Why there is no menu bar or no terminal here, and what to do instead. Pure."""

import shlex

from mpsbar.views.language import _


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
