"""The words of the settings and of starting at login. Pure."""

from mpsbar.core.naming import printable
from mpsbar.core.settings import KEYS, Loaded
from mpsbar.core.toml import render_value
from mpsbar.ui.text.wording import _


def render_settings(loaded: Loaded) -> str:
    """The settings in force, as a file that could be used, with the origin of each."""
    lines = [f"# {printable(loaded.file)}"]
    for key in KEYS:
        value = render_value(getattr(loaded.settings, key))
        lines.append(f"{key} = {value}  # {_origin(loaded, key)}")
    return "\n".join(lines)


def _origin(loaded: Loaded, key: str) -> str:
    return {
        "default": _("default"),
        "file": _("file"),
        "environment": f"MPSBAR_{key.upper()}",
        "flag": f"--{key.replace('_', '-')}",
    }[loaded.origins.get(key, "default")]


def settings_are_well(loaded: Loaded, is_there: bool) -> str:
    file = printable(loaded.file)
    if is_there:
        return _("{file}: no mistake found").format(file=file)
    return _("{file} does not exist: the defaults are used").format(file=file)


def login(state: str, where: str | None, why: str | None, detail: str | None) -> str:
    """One sentence on whether mpsbar starts at login; what desktop.login's status holds."""
    reason = login_reason(why, where, detail)
    sentences = {
        "on": _("mpsbar starts at login ({where})").format(where=_path(where)),
        "off": _("mpsbar does not start at login"),
        "needs_approval": _(
            "mpsbar may not start at login yet: allow it in System Settings > General > Login Items"
        ),
        "unavailable": _("mpsbar cannot change its start at login"),
    }
    return f"{sentences[state]}: {reason}" if reason else sentences[state]


def login_export(state: str, where: str | None, why: str | None, detail: str | None) -> str:
    """The same on `mpsbar export`, the service."""
    reason = login_reason(why, where, detail)
    sentences = {
        "on": _("mpsbar export starts at login ({where})").format(where=_path(where)),
        "off": _("mpsbar export does not start at login"),
        "unavailable": _("mpsbar cannot change the start of mpsbar export at login"),
    }
    return f"{sentences[state]}: {reason}" if reason else sentences[state]


def login_reason(why: str | None, where: str | None, detail: str | None) -> str:
    """The part after the colon, or nothing."""
    if why is None:
        return ""
    given = {"where": _path(where), "detail": _path(detail)}
    reasons = {
        "disk_image": _("it runs from its disk image; move it to Applications first"),
        "translocated": _("it was not moved since it was downloaded; move it to Applications"),
        "old_macos": _("macOS 13 or newer is needed"),
        "refused": _("macOS refused ({detail})"),
        "foreign": _("{where} was not written by mpsbar and was left as it is"),
        "not_written": _("{where} could not be changed ({detail})"),
        "command_gone": _(
            "{where} would start {detail}, which is gone; mpsbar login on repairs it"
        ),
        "temporary_command": _("{detail} is kept only for a while; install mpsbar first"),
        "odd_path": _("the path {detail} has characters that cannot be written there"),
        "disabled_by_user": _("it is switched off in the settings of the desktop"),
    }
    return reasons[why].format(**given)


def _path(text: str | None) -> str:
    return printable(text) if text else "?"
