"""The words of the settings and of opening at login. Pure."""

from mpsbar.core.naming import printable
from mpsbar.core.settings import KEYS, LoadedSettings, Settings
from mpsbar.core.toml import render_value
from mpsbar.language import _
from mpsbar.ui.text.wording import UNKNOWN


def render_settings(loaded: LoadedSettings) -> str:
    """The settings in force, as a file that could be used, with the origin of each."""
    lines = [f"# {printable(loaded.file)}"]
    for key in KEYS:
        value = render_value(getattr(loaded.settings, key))
        lines.append(f"{key} = {value}  # {_origin(loaded, key)}")
    return "\n".join(lines)


def render_template() -> str:
    """A new settings file: every setting with its default, as a comment."""
    first = _("Settings of mpsbar. Remove the # in front of those you change.")
    lines = [f"{key} = {render_value(getattr(Settings(), key))}" for key in KEYS]
    return "".join(f"# {line}\n" for line in (first, *lines))


def _origin(loaded: LoadedSettings, key: str) -> str:
    return {
        "default": _("default"),
        "file": _("file"),
        "environment": f"MPSBAR_{key.upper()}",
        "flag": f"--{key.replace('_', '-')}",
    }[loaded.origins.get(key, "default")]


def say_settings_ok(loaded: LoadedSettings, is_there: bool) -> str:
    file = printable(loaded.file)
    if is_there:
        return _("{file}: no errors found").format(file=file)
    return _("{file} does not exist; using the defaults").format(file=file)


def login(state: str, where: str | None, why: str | None, detail: str | None) -> str:
    """One sentence on whether mpsbar opens at login, from the LoginStatus of desktop.login."""
    reason = login_reason(why, where, detail)
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


def login_export(state: str, where: str | None, why: str | None, detail: str | None) -> str:
    """The same on `mpsbar export`, the service."""
    reason = login_reason(why, where, detail)
    sentences = {
        "on": _("mpsbar export starts at login ({where})").format(where=_path(where)),
        "off": _("mpsbar export does not start at login"),
        "unavailable": _("mpsbar can't change whether mpsbar export starts at login"),
    }
    return f"{sentences[state]}: {reason}" if reason else sentences[state]


def login_reason(why: str | None, where: str | None, detail: str | None) -> str:
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
