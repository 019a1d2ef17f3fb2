"""Renders mpsbar's check of itself: what passed, failed, or must be seen by a person. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mpsbar.core.naming import printable
from mpsbar.language import _
from mpsbar.ui.text.cells import pad
from mpsbar.ui.text.wording import shorten_home

# skip: not possible here, and the detail says why; manual: only a person can see it.
SelfCheckState = Literal["pass", "fail", "skip", "manual"]


@dataclass(frozen=True, slots=True)
class SelfCheck:
    key: str
    state: SelfCheckState
    detail: str = ""  # a value, or a code for the text


_MARKS = {"pass": _("pass"), "fail": _("FAIL"), "skip": "-", "manual": _("todo")}
_WIDTH = 400

# What only a person can see, in the order of packaging/MAC_CHECKLIST.md.
FOR_PEOPLE = {
    "drawn": _(
        "the hexagon with three bars is in the menu bar, sharp, and the same color as the other "
        "icons"
    ),
    "open_menu": _("the menu opens at once, and its numbers update while it is open"),
    "columns": _("sizes are right-aligned in one column, and names are not cut off before it"),
    "shapes": _(
        "sudo memory_pressure -S -l warn -s 20: an exclamation mark; -l critical: a solid hexagon"
    ),
    "notice": _("an alert appears under mpsbar's name, with its icon"),
    "login_item": _(
        "Open at Login: mpsbar is listed in System Settings > General > Login Items, and opens"
    ),
    "footprint": _("a process's footprint matches Activity Monitor's Memory column"),
    "no_dock": _("mpsbar is not in the Dock"),
}


def render_self_test(version: str, checks: Sequence[SelfCheck], home: str) -> str:
    lines = [_("mpsbar {version} self-test").format(version=version), ""]
    lines += [_line(check, home) for check in checks if check.state != "manual"]
    for_people = [check for check in checks if check.state == "manual"]
    if for_people:
        lines += ["", _("To check yourself, on a Mac (packaging/MAC_CHECKLIST.md):")]
        lines += [_line(check, home) for check in for_people]
    return "\n".join([*lines, "", _sum(checks)])


def say_readings(file: str, share: bool) -> str:
    if share:
        return _(
            "{file} holds what this computer answered, without names of processes. Check it, then "
            "attach it to an issue:"
        ).format(file=file)
    return _("What this computer answered is in {file}; --share shows it.").format(file=file)


def build_self_test(version: str, checks: Sequence[SelfCheck]) -> dict[str, Any]:
    """The checks as JSON values, for programs."""
    rows = [{"check": c.key, "state": c.state, "detail": c.detail or None} for c in checks]
    return {"schema": 1, "mpsbar": version, "checks": rows}


def _line(check: SelfCheck, home: str) -> str:
    mark = _MARKS[check.state]
    if check.state == "manual":
        return f"  {pad(mark, 4)}  {FOR_PEOPLE[check.key]}"
    words = _why_skipped(check.detail) if check.state == "skip" else check.detail
    detail = shorten_home(printable(words, _WIDTH), home)
    return f"  {pad(mark, 4)}  {_title(check.key)}" + (f": {detail}" if detail else "")


def _why_skipped(code: str) -> str:
    return {
        "not_a_mac": _("not checked: this needs a Mac"),
        "virtual": _("not checked: a virtual machine doesn't report its GPU"),
        "not_in_app": _("not checked: this is not mpsbar.app"),
        "no_torch": _("not checked: name a Python that has torch with --python"),
        "not_yet": _("not checked: the menu bar app has not run yet, or there is no screen"),
    }.get(code, code)


def _title(key: str) -> str:
    return {
        "resources": _("icons and other resources"),
        "folders": _("folders for settings, data and log"),
        "settings": _("settings file"),
        "agent": _("an agent starts and answers"),
        "machine": _("this computer can be read"),
        "process": _("a process can be read"),
        "worker": _("a process with torch is connected and freed"),
        "frameworks": _("rumps and PyObjC"),
        "gpu_clients": _("processes that use the GPU"),
        "screen": _("an icon can be shown"),
        "icon": _("the icon, when the app last checked it"),
        "alerts": _("alerts, when the app last sent one"),
        "login": _("open at login"),
        "bundle": _("the app bundle"),
        "sealed": _("the app is unmodified"),
        "signature": _("the code signature"),
    }.get(key, key)


def _sum(checks: Sequence[SelfCheck]) -> str:
    counts = {state: sum(check.state == state for check in checks) for state in _MARKS}
    text = _("{passed} passed, {failed} failed, {skipped} not checked, {manual} to check yourself")
    return text.format(
        passed=counts["pass"],
        failed=counts["fail"],
        skipped=counts["skip"],
        manual=counts["manual"],
    )
