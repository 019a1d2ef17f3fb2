"""Renders mpsbar's check of itself: what passed, failed, or must be seen by a person. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mpsbar.core.naming import printable
from mpsbar.ui.text.wording import _, shorten_home

# skip: not possible here, and the detail says why; look: only a person can see it.
SelfCheckState = Literal["pass", "fail", "skip", "look"]


@dataclass(frozen=True, slots=True)
class SelfCheck:
    key: str
    state: SelfCheckState
    detail: str = ""  # a value, or a code for the text


_MARKS = {"pass": "pass", "fail": "FAIL", "skip": "-", "look": "look"}
_WIDTH = 400

# What only a person can see, in the order of packaging/MAC_CHECKLIST.md.
FOR_PEOPLE = {
    "drawn": _("the hexagon with three bars is in the menu bar, sharp, coloured as its neighbours"),
    "open_menu": _("the menu opens at once, and its numbers move while it is open"),
    "columns": _("sizes stand right-aligned in one column, names are not cut off before it"),
    "shapes": _("memory_pressure -S -l warn: an exclamation mark; -l critical: a solid hexagon"),
    "notice": _("an alert shows as from mpsbar, with its icon"),
    "login_item": _("Start at Login: mpsbar stands in System Settings > Login Items, and starts"),
    "footprint": _("a worker's footprint is that of Activity Monitor's Memory column"),
    "no_dock": _("there is no mpsbar in the Dock"),
}


def render_self_test(version: str, checks: Sequence[SelfCheck], home: str) -> str:
    lines = [_("mpsbar {version} looks at itself").format(version=version), ""]
    lines += [_line(check, home) for check in checks if check.state != "look"]
    for_people = [check for check in checks if check.state == "look"]
    if for_people:
        lines += ["", _("Look at these yourself, on a Mac (packaging/MAC_CHECKLIST.md):")]
        lines += [_line(check, home) for check in for_people]
    return "\n".join([*lines, "", _sum(checks)])


def build_self_test(version: str, checks: Sequence[SelfCheck]) -> dict[str, Any]:
    """The checks as JSON values, for programs."""
    rows = [{"check": c.key, "state": c.state, "detail": c.detail or None} for c in checks]
    return {"schema": 1, "mpsbar": version, "checks": rows}


def _line(check: SelfCheck, home: str) -> str:
    mark = _MARKS[check.state]
    if check.state == "look":
        return f"  {mark}  {FOR_PEOPLE[check.key]}"
    words = _why_skipped(check.detail) if check.state == "skip" else check.detail
    detail = shorten_home(printable(words, _WIDTH), home)
    return f"  {mark:4}  {_title(check.key)}" + (f": {detail}" if detail else "")


def _why_skipped(code: str) -> str:
    return {
        "not_a_mac": _("not checked, only a Mac can show it"),
        "not_in_app": _("not checked, this is not mpsbar.app"),
        "not_yet": _("not checked, the menu bar app has not run yet, or there is no screen"),
    }.get(code, code)


def _title(key: str) -> str:
    return {
        "resources": _("icons and files that come along"),
        "folders": _("folders for settings, data and log"),
        "settings": _("the settings"),
        "agent": _("an agent starts and answers"),
        "machine": _("this computer can be read"),
        "process": _("a process can be read"),
        "frameworks": _("rumps and PyObjC"),
        "gpu_clients": _("who uses the GPU"),
        "screen": _("an icon can be drawn"),
        "icon": _("the icon, as the app last saw it"),
        "login": _("start at login"),
        "bundle": _("the app knows itself"),
        "sealed": _("the app is as it was built"),
        "signature": _("the signature"),
    }.get(key, key)


def _sum(checks: Sequence[SelfCheck]) -> str:
    counts = {state: sum(check.state == state for check in checks) for state in _MARKS}
    text = _("{passed} passed, {failed} failed, {skipped} not checked, {looks} to look at")
    return text.format(
        passed=counts["pass"], failed=counts["fail"], skipped=counts["skip"], looks=counts["look"]
    )
