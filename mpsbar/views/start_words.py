"""What starting the menu bar app may have to say. Pure."""

from mpsbar.views.language import _


def is_running(pid: int | None) -> str:
    who = "" if pid is None else _(" (process {pid})").format(pid=pid)
    return _("it is running already{who}: look for its hexagon in the menu bar").format(who=who)


def no_rumps(problem: str) -> str:
    return _(
        "the menu bar needs rumps and PyObjC ({problem}): pip install --upgrade mpsbar"
    ).format(problem=problem)
