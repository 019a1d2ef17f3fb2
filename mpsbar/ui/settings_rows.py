"""The menu's submenu Settings. Pure."""

from collections.abc import Iterator

from mpsbar.core.actions import ChangeSetting, Command, StartAtLogin
from mpsbar.core.addresses import ExportState
from mpsbar.core.events import ALERT_CAUSES
from mpsbar.core.limits import parse_size
from mpsbar.core.settings import INTERVALS, KEEP_CACHE_BELOW, OFF, Settings
from mpsbar.language import _
from mpsbar.ui.rows import Row, UiState
from mpsbar.ui.text import wording
from mpsbar.ui.text.alerts import say_cause
from mpsbar.ui.text.login import login_title


def build_settings(ui_state: UiState) -> Iterator[Row]:
    settings = ui_state.settings
    yield Row("bar", _("Menu Bar Shows"), children=tuple(_bar(settings)))
    yield Row("interval", _("Update Frequency"), children=tuple(_intervals(settings)))
    yield Row("alerts", _("Alerts"), children=tuple(_alerts(ui_state)))
    yield Row("auto-free", _("Free Automatically"), children=tuple(_auto_free(settings)))
    if ui_state.export is not None:
        yield _export(ui_state, ui_state.export)
    if ui_state.login is not None:
        yield _login(ui_state.login)
    if ui_state.has_tool:
        yield Row("command", _("Install Command Line Tool…"), actions=(Command.INSTALL_COMMAND,))


def _bar(settings: Settings) -> Iterator[Row]:
    words = {
        "memory": _("Memory Held"),
        "gpu": _("GPU Usage"),
        "progress": _("Progress"),
        "dot": _("Dot Only"),
        "icon": _("Icon Only"),
    }
    for value, text in words.items():
        choice = ChangeSetting("bar", value)
        yield Row(f"bar-{value}", text, actions=(choice,), is_checked=settings.bar == value)


def _intervals(settings: Settings) -> Iterator[Row]:
    for seconds in INTERVALS:
        text = wording.interval(seconds)
        choice = ChangeSetting("interval", float(seconds))
        is_checked = settings.interval == seconds
        yield Row(f"interval-{seconds}", text, actions=(choice,), is_checked=is_checked)


def _auto_free(settings: Settings) -> Iterator[Row]:
    """Lists the choices for all processes; each process has its own in its submenu."""
    sizes = [OFF, *KEEP_CACHE_BELOW]
    if parse_size(settings.keep_cache_below) not in map(parse_size, sizes):
        sizes.append(settings.keep_cache_below)  # of the settings file
    children = tuple(
        Row(
            f"keep-cache-{text}",
            _("Off") if text == OFF else wording.size(parse_size(text)),
            actions=(ChangeSetting("keep_cache_below", text),),
            is_checked=parse_size(settings.keep_cache_below) == parse_size(text),
        )
        for text in sizes
    )
    tip = _("Frees a cache when it exceeds this size, at most once a minute and never while busy.")
    yield Row("keep-cache", _("Keep Cache Below"), children=children, tooltip=tip)
    for key, text, tip in (
        ("free_when_idle", _("Free When Idle"),
         _("Frees a cache after a minute of inactivity, if it is large or memory is low.")),
        ("free_at_critical_pressure", _("Free at Critical Memory Pressure"),
         _("Frees the caches of idle processes when memory pressure becomes critical.")),
    ):  # fmt: skip
        on = getattr(settings, key)
        actions = (ChangeSetting(key, not on),)
        yield Row(key.replace("_", "-"), text, actions=actions, is_checked=on, tooltip=tip)


def _alerts(ui_state: UiState) -> Iterator[Row]:
    settings = ui_state.settings
    if ui_state.delivery == "off":
        text = _("Notifications Are Off in System Settings…")
        yield Row("delivery-off", text, actions=(Command.EXPLAIN_DELIVERY,))
    choice = ChangeSetting("alerts", not settings.alerts)
    yield Row("alerts-on", _("Show Notifications"), actions=(choice,), is_checked=settings.alerts)
    for cause in ALERT_CAUSES:
        on = cause in settings.alert_causes
        chosen = tuple(c for c in ALERT_CAUSES if (c in settings.alert_causes) != (c == cause))
        # Disabled while no alerts are sent at all, but the check marks stay.
        actions = (ChangeSetting("alert_causes", chosen),) if settings.alerts else ()
        yield Row(f"alerts-{cause}", say_cause(cause), actions=actions, is_checked=on)


def _export(ui_state: UiState, state: ExportState) -> Row:
    is_on = ui_state.settings.export != OFF
    choice = ChangeSetting("export", OFF if is_on else ui_state.export_address)
    tip = _("For Prometheus, at {url}; only programs on this computer can read it.").format(
        url=state.url or f"http://{ui_state.export_address}/metrics"
    )
    text = _("Serve Metrics")
    return Row("export", text, actions=(choice,), is_checked=is_on, tooltip=state.problem or tip)


def _login(state: str) -> Row:
    text = login_title(state)
    return Row("login", text, actions=(StartAtLogin(state != "on"),), is_checked=state == "on")
