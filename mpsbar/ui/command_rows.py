"""The rows at the end of the menu: report, diagnostics, settings, About, Quit. Pure."""

from collections.abc import Iterator

from mpsbar.core.actions import (
    CheckUp,
    Choose,
    InstallCommand,
    OpenReport,
    Quit,
    ShowAbout,
    ShowProfiling,
    StartAtLogin,
)
from mpsbar.core.events import ALERT_CAUSES
from mpsbar.core.settings import INTERVALS, Settings
from mpsbar.core.snapshot import Snapshot
from mpsbar.ui.rows import Row, UiState
from mpsbar.ui.text import wording
from mpsbar.ui.text.alerts import say_cause
from mpsbar.ui.text.wording import _


def build_commands(snapshot: Snapshot, ui_state: UiState) -> tuple[Row, ...]:
    collecting = CheckUp() in snapshot.pending
    diagnostics = _("Collecting Diagnostics…") if collecting else _("Copy Diagnostics")
    report = _("Creating Report…") if ui_state.is_reporting else _("Open Report")
    return (
        Row("report", report, actions=() if ui_state.is_reporting else (OpenReport(),)),
        Row("profile", _("How to Profile…"), actions=(ShowProfiling(),)),
        Row("diagnostics", diagnostics, actions=() if collecting else (CheckUp(),)),
        Row("settings", _("Settings"), children=tuple(_settings(ui_state))),
        Row("about", _("About mpsbar"), actions=(ShowAbout(),)),
        Row("quit", _("Quit mpsbar"), actions=(Quit(),), shortcut="q"),
    )


def _settings(ui_state: UiState) -> Iterator[Row]:
    settings = ui_state.settings
    yield Row("bar", _("Menu Bar Shows"), children=tuple(_bar(settings)))
    yield Row("interval", _("Update Frequency"), children=tuple(_intervals(settings)))
    yield Row("alerts", _("Alerts"), children=tuple(_alerts(settings)))
    if ui_state.login is not None:
        yield _login(ui_state.login)
    if ui_state.has_tool:
        yield Row("command", _("Install Command Line Tool…"), actions=(InstallCommand(),))


def _bar(settings: Settings) -> Iterator[Row]:
    words = {
        "memory": _("Memory Held"),
        "gpu": _("GPU Usage"),
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


def _alerts(settings: Settings) -> Iterator[Row]:
    choice = Choose("alerts", not settings.alerts)
    yield Row("alerts-on", _("Show Notifications"), actions=(choice,), is_checked=settings.alerts)
    for cause in ALERT_CAUSES:
        on = cause in settings.alert_causes
        chosen = tuple(c for c in ALERT_CAUSES if (c in settings.alert_causes) != (c == cause))
        # Disabled while no alerts are sent at all, but the check marks stay.
        actions = (Choose("alert_causes", chosen),) if settings.alerts else ()
        yield Row(f"alerts-{cause}", say_cause(cause), actions=actions, is_checked=on)


def _login(state: str) -> Row:
    text = _("Open at Login")
    if state == "needs_approval":
        text = _("Open at Login (Needs Approval…)")
    return Row("login", text, actions=(StartAtLogin(state != "on"),), is_checked=state == "on")
