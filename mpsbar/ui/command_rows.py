"""The menu's rows below the processes: connect, alerts, report, settings, About, Quit. Pure."""

from collections.abc import Iterator

from mpsbar.core.actions import (
    Choose,
    Command,
    Connect,
    InspectPythons,
    StartAtLogin,
)
from mpsbar.core.addresses import ExportState
from mpsbar.core.events import ALERT_CAUSES, Alert, Event
from mpsbar.core.limits import parse_size
from mpsbar.core.settings import INTERVALS, KEEP_CACHE_BELOW, OFF, Settings
from mpsbar.core.snapshot import Snapshot
from mpsbar.language import _
from mpsbar.ui.rows import Row, UiState
from mpsbar.ui.text import wording
from mpsbar.ui.text.alerts import say_alert_in_a_line, say_cause
from mpsbar.ui.text.cells import cut_middle

_MAX_PYTHONS = 12
_PYTHON_WIDTH = 70
# The Pythons, then Other…: none can be inserted while the menu is open.
_PYTHON_ROOM = _MAX_PYTHONS + 1
_MAX_ALERTS = 10
_ALERT_WIDTH = 80
_PROBLEM_WIDTH = 120  # what to do stands at its end


def build_commands(snapshot: Snapshot, ui_state: UiState) -> tuple[Row, ...]:
    collecting = InspectPythons() in snapshot.pending
    diagnostics = _("Collecting Diagnostics…") if collecting else _("Copy Diagnostics")
    report = _("Creating Report…") if ui_state.is_reporting else _("Open Report")
    return (
        _build_connect(snapshot, ui_state),
        *_recent_alerts(snapshot, ui_state.delivery),
        *_export_problem(ui_state),
        Row("report", report, actions=() if ui_state.is_reporting else (Command.OPEN_REPORT,)),
        Row("profile", _("How to Profile…"), actions=(Command.SHOW_PROFILING,)),
        Row("diagnostics", diagnostics, actions=() if collecting else (InspectPythons(),)),
        Row("settings", _("Settings"), children=tuple(_settings(ui_state))),
        Row("about", _("About mpsbar"), actions=(Command.SHOW_ABOUT,)),
        Row("quit", _("Quit mpsbar"), actions=(Command.QUIT,), shortcut="q"),
    )


def _recent_alerts(snapshot: Snapshot, delivery: str) -> Iterator[Row]:
    """The last alerts, newest first: none is lost, whether macOS showed it or not."""
    alerts = [event for event in snapshot.events if isinstance(event.what, Alert)]
    if not alerts:
        return
    if delivery in ("script", "failed"):
        text = _("Alerts May Not Be Visible…")
        yield Row("delivery", text, actions=(Command.EXPLAIN_DELIVERY,))
    newest = alerts[: -_MAX_ALERTS - 1 : -1]
    children = tuple(_recent_alert(event, snapshot.time) for event in newest)
    yield Row("recent", _("Recent Alerts"), children=children)


def _export_problem(ui_state: UiState) -> Iterator[Row]:
    """Says in the menu that metrics are not served: otherwise only Prometheus would show it."""
    if ui_state.export is not None and ui_state.export.problem is not None:
        text = _("Metrics Are Not Served: {why}").format(why=ui_state.export.problem)
        yield Row("export-problem", cut_middle(text, _PROBLEM_WIDTH), tooltip=text)


def _recent_alert(event: Event, now: float) -> Row:
    assert isinstance(event.what, Alert)
    line = say_alert_in_a_line(event.what)
    text = _("{line} ({ago})").format(
        line=cut_middle(line, _ALERT_WIDTH), ago=wording.ago(event.time, now)
    )
    return Row(f"recent-{event.number}", text, tooltip=line)


def _settings(ui_state: UiState) -> Iterator[Row]:
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
        choice = Choose("bar", value)
        yield Row(f"bar-{value}", text, actions=(choice,), is_checked=settings.bar == value)


def _intervals(settings: Settings) -> Iterator[Row]:
    for seconds in INTERVALS:
        text = wording.interval(seconds)
        choice = Choose("interval", float(seconds))
        is_checked = settings.interval == seconds
        yield Row(f"interval-{seconds}", text, actions=(choice,), is_checked=is_checked)


def _auto_free(settings: Settings) -> Iterator[Row]:
    """The choices for all processes; the submenu of one has its own."""
    sizes = [OFF, *KEEP_CACHE_BELOW]
    if parse_size(settings.keep_cache_below) not in map(parse_size, sizes):
        sizes.append(settings.keep_cache_below)  # of the settings file
    children = tuple(
        Row(
            f"keep-cache-{text}",
            _("Off") if text == OFF else wording.size(parse_size(text)),
            actions=(Choose("keep_cache_below", text),),
            is_checked=parse_size(settings.keep_cache_below) == parse_size(text),
        )
        for text in sizes
    )
    tip = _("Frees a cache when it grows larger, at most once a minute and never while busy.")
    yield Row("keep-cache", _("Keep Cache Below"), children=children, tooltip=tip)
    for key, text, tip in (
        ("free_when_idle", _("Free When Idle"),
         _("Frees a cache after a minute of inactivity, if it is large or memory is short.")),
        ("free_at_critical_pressure", _("Free at Critical Memory Pressure"),
         _("Frees the caches of idle processes when memory pressure becomes critical.")),
    ):  # fmt: skip
        on = getattr(settings, key)
        actions = (Choose(key, not on),)
        yield Row(key.replace("_", "-"), text, actions=actions, is_checked=on, tooltip=tip)


def _alerts(ui_state: UiState) -> Iterator[Row]:
    settings = ui_state.settings
    if ui_state.delivery == "off":
        text = _("Notifications Are Off in System Settings…")
        yield Row("delivery-off", text, actions=(Command.EXPLAIN_DELIVERY,))
    choice = Choose("alerts", not settings.alerts)
    yield Row("alerts-on", _("Show Notifications"), actions=(choice,), is_checked=settings.alerts)
    for cause in ALERT_CAUSES:
        on = cause in settings.alert_causes
        chosen = tuple(c for c in ALERT_CAUSES if (c in settings.alert_causes) != (c == cause))
        # Disabled while no alerts are sent at all, but the check marks stay.
        actions = (Choose("alert_causes", chosen),) if settings.alerts else ()
        yield Row(f"alerts-{cause}", say_cause(cause), actions=actions, is_checked=on)


def _export(ui_state: UiState, state: ExportState) -> Row:
    is_on = ui_state.settings.export != OFF
    choice = Choose("export", OFF if is_on else ui_state.export_address)
    tip = _("For Prometheus, at {url}; only programs on this computer can read it.").format(
        url=state.url or f"http://{ui_state.export_address}/metrics"
    )
    text = _("Serve Metrics")
    return Row("export", text, actions=(choice,), is_checked=is_on, tooltip=state.problem or tip)


def _login(state: str) -> Row:
    text = _("Open at Login")
    if state == "needs_approval":
        text = _("Open at Login (Needs Approval…)")
    return Row("login", text, actions=(StartAtLogin(state != "on"),), is_checked=state == "on")


def build_welcome(snapshot: Snapshot, ui_state: UiState) -> tuple[Row, ...]:
    """What to do first; gone once an environment is connected and mpsbar opens at login (where
    that is possible), or when it is hidden."""
    is_done = bool(ui_state.enabled) and ui_state.login in ("on", "unavailable")
    if not ui_state.settings.welcome or ui_state.enabled is None or is_done:
        return ()
    is_on = ui_state.login == "on"
    alerts = ui_state.settings.alerts
    login = Row(
        "welcome-login", _("Open at Login"), actions=(StartAtLogin(not is_on),), is_checked=is_on
    )
    return (
        Row("welcome", _("Welcome to mpsbar")),
        Row(
            "welcome-connect", wording.found_pythons(len(ui_state.pythons or ())),
            children=_list_pythons("welcome", snapshot, ui_state), room=_PYTHON_ROOM,
        ),
        *(() if ui_state.login in (None, "unavailable") else (login,)),
        Row(
            "welcome-alerts", _("Show Notifications"), actions=(Choose("alerts", not alerts),),
            is_checked=alerts,
        ),
        Row("welcome-hide", _("Hide This"), actions=(Choose("welcome", False),)),
    )  # fmt: skip


def _build_connect(snapshot: Snapshot, ui_state: UiState) -> Row:
    """At all times, also while nothing runs."""
    children = _list_pythons("connect", snapshot, ui_state)
    return Row("connect", _("Connect an Environment"), children=children, room=_PYTHON_ROOM)


def _list_pythons(key: str, snapshot: Snapshot, ui_state: UiState) -> tuple[Row, ...]:
    enabled = ui_state.enabled or ()
    found = dict.fromkeys((*enabled, *(ui_state.pythons or ())))
    rows = []
    for number, python in enumerate(list(found)[:_MAX_PYTHONS]):
        action = Connect(python)
        text = cut_middle(wording.shorten_home(python, ui_state.home), _PYTHON_WIDTH)
        is_pending = action in snapshot.pending
        rows.append(
            Row(
                f"{key}-{number}",
                _("Connecting {python}…").format(python=text) if is_pending else text,
                actions=() if is_pending else (action,),
                tooltip=python,
                is_checked=python in enabled,
            )
        )
    return (*rows, Row(f"{key}-other", _("Other…"), actions=(Command.ASK_PYTHON,)))
