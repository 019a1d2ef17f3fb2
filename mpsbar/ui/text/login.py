"""All words of Open at Login: its name, whether it is on, and why not. Pure."""

from mpsbar.core.naming import printable
from mpsbar.language import _
from mpsbar.ui.text.wording import UNKNOWN


def login_title(state: str = "on") -> str:
    """The name of the menu item, which is also the title of its failures."""
    if state == "needs_approval":
        return _("Open at Login (Needs Approval…)")
    return _("Open at Login")


def say_login(state: str, where: str | None, why: str | None, detail: str | None) -> str:
    """One sentence on whether mpsbar opens at login, from the LoginStatus of desktop.login."""
    reason = _say_reason(why, where, detail)
    sentences = {
        "on": _("mpsbar opens at login ({where})").format(where=_path(where)),
        "off": _("mpsbar does not open at login"),
        "needs_approval": _(
            "mpsbar is not allowed to open at login yet: turn it on in"
            " System Settings > General > Login Items"
        ),
        "unavailable": _("mpsbar can't change whether it opens at login"),
    }
    return f"{sentences[state]}: {reason}" if reason else sentences[state]


def say_login_export(state: str, where: str | None, why: str | None, detail: str | None) -> str:
    """The same for `mpsbar export`, the service."""
    reason = _say_reason(why, where, detail)
    sentences = {
        "on": _("mpsbar export starts at login ({where})").format(where=_path(where)),
        "off": _("mpsbar export does not start at login"),
        "unavailable": _("mpsbar can't change whether mpsbar export starts at login"),
    }
    return f"{sentences[state]}: {reason}" if reason else sentences[state]


def _say_reason(why: str | None, where: str | None, detail: str | None) -> str:
    """The part after the colon, or nothing."""
    if why is None:
        return ""
    given = {"where": _path(where), "detail": _path(detail)}
    reasons = {
        "disk_image": _(
            "it is running from its disk image; move it to the Applications folder first"
        ),
        "translocated": _(
            "it hasn't been moved since it was downloaded; move it to the Applications folder"
        ),
        "old_macos": _("macOS 13 or later is required"),
        "refused": _("macOS refused ({detail})"),
        "foreign": _("{where} was not created by mpsbar and was left unchanged"),
        "not_written": _("couldn't change {where} ({detail})"),
        "command_gone": _(
            "{where} would start {detail}, which no longer exists; mpsbar login on fixes this"
        ),
        "temporary_command": _("{detail} is temporary; install mpsbar first"),
        "odd_path": _("the path {detail} contains characters that can't be written there"),
        "disabled_by_user": _("it is turned off in the desktop's settings"),
    }
    return reasons[why].format(**given)


def _path(text: str | None) -> str:
    return printable(text) if text else UNKNOWN
