"""What `mpsbar config` prints: the settings in force, and a new settings file. Pure."""

from mpsbar.core.naming import printable
from mpsbar.core.settings import KEYS, LoadedSettings, Settings
from mpsbar.core.toml import render_value
from mpsbar.language import _


def render_settings(loaded: LoadedSettings) -> str:
    """The settings in force, as a file that could be used, with the origin of each."""
    lines = [f"# {printable(loaded.file)}"]
    for key in KEYS:
        value = render_value(getattr(loaded.settings, key))
        lines.append(f"{key} = {value}  # {_origin(loaded, key)}")
    return "\n".join(lines)


def render_template() -> str:
    """A new settings file: every setting with its default, as a comment."""
    first = _("mpsbar settings. Remove the # in front of those you change.")
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
