"""The settings: their values, what is allowed, and complaints about what is not. Pure.

A new setting is a field of Settings, a row of _PARSERS and one of _ALLOWED; its menu item is in
ui/settings_rows.py.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from mpsbar.agent.conventions import MIN_LIMIT
from mpsbar.core.addresses import DEFAULT_ADDRESS, is_host_name, parse_address
from mpsbar.core.errors import UserError
from mpsbar.core.events import ALERT_CAUSES, COOL_DOWN
from mpsbar.core.limits import parse_size
from mpsbar.core.naming import printable
from mpsbar.core.toml import render_value
from mpsbar.language import _

BarContent = Literal["memory", "gpu", "progress", "dot", "icon"]
Theme = Literal["dark", "light", "contrast"]
Origin = Literal["default", "file", "environment", "flag"]
THEMES: tuple[Theme, ...] = ("dark", "light", "contrast")
BARS: tuple[BarContent, ...] = ("memory", "gpu", "progress", "dot", "icon")
# The menu offers these; the file may hold any number between the two bounds below.
INTERVALS = (1, 2, 5, 10, 30)
KEEP_CACHE_BELOW = ("1GB", "2GB", "4GB", "8GB", "16GB")
OFF = "off"
_INTERVAL_BOUNDS = (0.5, 3600.0)
_COOL_DOWN_BOUNDS = (0.0, 86400.0)
_MAX_HOSTS = 1000
Groups = Mapping[str, tuple[str, ...]]  # hosts by the name of their group


@dataclass(frozen=True, slots=True)
class Settings:
    bar: BarContent = "memory"  # what the menu bar shows
    interval: float = 2.0  # seconds between two readings
    alerts: bool = True  # whether there are any
    # What alerts are for.
    alert_causes: tuple[str, ...] = tuple(cause for cause in ALERT_CAUSES if cause != "cache")
    cool_down: float = COOL_DOWN  # seconds between two alerts about one process and cause
    last_words: bool = True  # connected processes leave a record of how they ended
    keep_cache_below: str = OFF  # a larger cache is freed
    free_when_idle: bool = False  # the cache of a process that has computed nothing for a minute
    free_at_critical_pressure: bool = False  # caches, while memory pressure is critical
    theme: Theme = "dark"  # of `mpsbar top`
    welcome: bool = True  # at the top of the menu, until an environment is connected
    export: str = OFF  # where the menu bar app serves metrics, such as 127.0.0.1:9478
    hosts: tuple[str, ...] = ()  # hosts that --hosts means
    groups: Groups = field(default_factory=dict)  # named groups for --host NAME

    @property
    def keep_cache_bytes(self) -> int:
        """Returns the largest cache that is left alone; 0: any size is."""
        return parse_size(self.keep_cache_below) or 0


KEYS = tuple(field.name for field in fields(Settings))
AUTO_FREE_KEYS = ("keep_cache_below", "free_when_idle", "free_at_critical_pressure")


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings in force, the origin of each, and complaints about values not used."""

    settings: Settings
    file: str
    origins: Mapping[str, Origin] = field(default_factory=dict)  # those not named: default
    complaints: tuple[str, ...] = ()
    is_file_usable: bool = True  # or missing


class _DisallowedValueError(ValueError):
    """The value is not among the allowed ones."""


def _bar(value: Any) -> Any:
    return _check(value, isinstance(value, str) and value in BARS)


def _theme(value: Any) -> Any:
    return _check(value, isinstance(value, str) and value in THEMES)


def _flag(value: Any) -> Any:
    return _check(value, isinstance(value, bool))


def _causes(value: Any) -> tuple[str, ...]:
    is_list = isinstance(value, (list, tuple)) and all(item in ALERT_CAUSES for item in value)
    return tuple(cause for cause in ALERT_CAUSES if cause in _check(value, is_list))


def _seconds(bounds: tuple[float, float]) -> Callable[[Any], float]:
    def parse(value: Any) -> float:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return float(_check(value, is_number and bounds[0] <= value <= bounds[1]))

    return parse


def _size_or_off(value: Any) -> str:
    is_size = isinstance(value, str) and (parse_size(value) or 0) >= MIN_LIMIT
    return str(_check(value, value == OFF or is_size))


def _loopback_or_off(value: Any) -> str:
    """Refuses an address that others can reach: that takes TLS, which `mpsbar export` has."""
    if value == OFF:
        return OFF
    try:
        address = parse_address(_check(value, isinstance(value, str)))
    except UserError:
        raise _DisallowedValueError from None
    return str(_check(str(address), address.is_loopback and address.port > 0))


def _hosts(value: Any) -> tuple[str, ...]:
    is_list = isinstance(value, (list, tuple)) and len(value) <= _MAX_HOSTS
    names = _check(value, is_list and all(isinstance(n, str) and is_host_name(n) for n in value))
    return tuple(dict.fromkeys(names))


def _groups(value: Any) -> Groups:
    is_table = isinstance(value, dict) and len(value) <= _MAX_HOSTS
    table = _check(value, is_table and all(is_host_name(name) for name in value))
    return {name: _hosts(members) for name, members in table.items()}


def _check(value: Any, is_allowed: bool) -> Any:
    if not is_allowed:
        raise _DisallowedValueError
    return value


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "bar": _bar,
    "interval": _seconds(_INTERVAL_BOUNDS),
    "alerts": _flag,
    "alert_causes": _causes,
    "cool_down": _seconds(_COOL_DOWN_BOUNDS),
    "last_words": _flag,
    "keep_cache_below": _size_or_off,
    "free_when_idle": _flag,
    "free_at_critical_pressure": _flag,
    "theme": _theme,
    "welcome": _flag,
    "export": _loopback_or_off,
    "hosts": _hosts,
    "groups": _groups,
}
_FLAGS = {key for key, parse in _PARSERS.items() if parse is _flag}
_ALLOWED = {
    "bar": _("one of {names}").format(names=", ".join(BARS)),
    "interval": _("a number of seconds from 0.5 to 3600"),
    "alerts": _("true or false"),
    "alert_causes": _("a list of {names}").format(names=", ".join(ALERT_CAUSES)),
    "cool_down": _("a number of seconds from 0 to 86400"),
    "last_words": _("true or false"),
    "keep_cache_below": _('"off", or a size of at least "64MB", such as "4GB"'),
    "free_when_idle": _("true or false"),
    "free_at_critical_pressure": _("true or false"),
    "theme": _("one of {names}").format(names=", ".join(THEMES)),
    "welcome": _("true or false"),
    "export": _(
        '"off", or an address of this computer only, such as "{address}"'
        " (for others: mpsbar export --help)"
    ).format(address=DEFAULT_ADDRESS),
    "hosts": _('a list of names for ssh, such as ["mac1", "me@mac2"]'),
    "groups": _("a table of lists, such as {example}").format(
        example='{studio = ["mac1", "mac2"]}'
    ),
}


def parse_values(
    table: Mapping[str, Any], name_of: Callable[[str], str] = str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns the allowed values, and a complaint for each other one; `name_of` names a key."""
    values: dict[str, Any] = {}
    complaints = []
    for key, value in table.items():
        try:
            values[key] = parse_value(key, value, name_of(key))
        except UserError as complaint:
            complaints.append(str(complaint))
    return values, tuple(complaints)


def parse_value(key: str, value: Any, name: str | None = None) -> Any:
    """Returns the value in the form that Settings has; raises UserError if it is not allowed."""
    if key not in _PARSERS:
        raise UserError(_complain_unknown(name or key))
    try:
        return _PARSERS[key](value)
    except _DisallowedValueError:
        shown = _show(value)
        text = _("{setting} is {value}: it must be {allowed}")
        raise UserError(
            text.format(setting=name or key, value=shown, allowed=_ALLOWED[key])
        ) from None


def parse_text(key: str, text: str) -> Any:
    """Parses an environment variable; text that fits nothing stays text, and is refused later."""
    words = text.strip()
    if key == "alert_causes":
        return [word for word in words.replace(",", " ").split() if word != "none"]
    if key == "hosts":
        return words.replace(",", " ").split()
    if key == "groups":  # studio=mac1,mac2 lab=mac3
        pairs = [word.partition("=") for word in words.split()]
        return {name: names.split(",") if sign else text for name, sign, names in pairs}
    if key in _FLAGS:
        return {"1": True, "true": True, "yes": True, "on": True}.get(
            words.lower(), False if words.lower() in ("0", "false", "no", "off") else text
        )
    if key in ("interval", "cool_down"):
        try:
            number = float(words)
        except ValueError:
            return text
        return number if math.isfinite(number) else text
    return words


def change(settings: Settings, key: str, value: Any) -> Settings:
    """Returns the settings with one value changed; UserError: no such setting or value."""
    return replace(settings, **{key: parse_value(key, value)})


def find_nearest(word: str, known: Iterable[str]) -> str | None:
    import difflib  # imported late: for mistakes only

    return next(iter(difflib.get_close_matches(word, list(known), n=1)), None)


def _complain_unknown(name: str) -> str:
    nearest = find_nearest(name, KEYS)
    if nearest:
        text = _("{name} is not a setting; did you mean {nearest}?")
        return text.format(name=_show_key(name), nearest=nearest)
    text = _("{name} is not a setting; the settings are {names}")
    return text.format(name=_show_key(name), names=", ".join(KEYS))


def _show_key(name: str) -> str:
    return printable(name, 60) if name.strip() else render_value(name)


def _show(value: Any) -> str:
    """Returns a value as it is written in the file, cut to fit into a sentence."""
    is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
    is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    try:
        plain = is_list or is_number or isinstance(value, str)
        text = printable(render_value(value) if plain else str(value), 61)
    except (ValueError, RecursionError):  # thousands of digits, or of brackets
        return _("too long to show")
    return text if len(text) <= 60 else text[:59] + "…"
