"""The rows at the end of the menu: what mpsbar itself can do, and how it is set. Pure."""

from collections.abc import Iterator

from mpsbar.model.action import (
    CheckUp,
    Choose,
    InstallCommand,
    OpenReport,
    Quit,
    ShowAbout,
    ShowProfiling,
    StartAtLogin,
)
from mpsbar.model.desk import Desk
from mpsbar.model.settings import CAUSES, INTERVALS, Settings
from mpsbar.model.snapshot import Snapshot
from mpsbar.views import wording
from mpsbar.views.language import _
from mpsbar.views.row import Row


def build_commands(snapshot: Snapshot, desk: Desk) -> tuple[Row, ...]:
    collecting = CheckUp() in snapshot.pending
    diagnostics = _("Collecting Diagnostics…") if collecting else _("Copy Diagnostics")
    report = _("Making the Report…") if desk.is_reporting else _("Open Report")
    return (
        Row("report", report, actions=() if desk.is_reporting else (OpenReport(),)),
        Row("profile", _("How to Profile…"), actions=(ShowProfiling(),)),
        Row("diagnostics", diagnostics, actions=() if collecting else (CheckUp(),)),
        Row("settings", _("Settings"), children=tuple(_settings(desk))),
        Row("about", _("About mpsbar"), actions=(ShowAbout(),)),
        Row("quit", _("Quit mpsbar"), actions=(Quit(),), shortcut="q"),
    )


def _settings(desk: Desk) -> Iterator[Row]:
    settings = desk.settings
    yield Row("bar", _("Menu Bar Shows"), children=tuple(_bar(settings)))
    yield Row("interval", _("Refresh"), children=tuple(_intervals(settings)))
    yield Row("alerts", _("Alerts"), children=tuple(_alerts(settings)))
    if desk.login is not None:
        yield _login(desk.login)
    if desk.has_tool:
        yield Row("command", _("Install Command Line Tool…"), actions=(InstallCommand(),))


def _bar(settings: Settings) -> Iterator[Row]:
    words = {
        "memory": _("Memory Held"),
        "gpu": _("GPU %"),
        "dot": _("Only a Dot"),
        "icon": _("Only the Icon"),
    }
    for value, text in words.items():
        choice = Choose("bar", value)
        yield Row(f"bar-{value}", text, actions=(choice,), is_checked=settings.bar == value)


def _intervals(settings: Settings) -> Iterator[Row]:
    for seconds in INTERVALS:
        text = _("Every {time}").format(time=wording.seconds(seconds))
        choice = Choose("interval", float(seconds))
        is_checked = settings.interval == seconds
        yield Row(f"interval-{seconds}", text, actions=(choice,), is_checked=is_checked)


def _alerts(settings: Settings) -> Iterator[Row]:
    choice = Choose("alerts", not settings.alerts)
    yield Row("alerts-on", _("Notify Me"), actions=(choice,), is_checked=settings.alerts)
    for cause in CAUSES:
        on = cause in settings.alert_causes
        chosen = tuple(c for c in CAUSES if (c in settings.alert_causes) != (c == cause))
        # Greyed while none are sent at all, but still telling what is chosen.
        actions = (Choose("alert_causes", chosen),) if settings.alerts else ()
        yield Row(f"alerts-{cause}", wording.cause(cause), actions=actions, is_checked=on)


def _login(state: str) -> Row:
    text = _("Start at Login")
    if state == "needs_approval":
        text = _("Start at Login (needs your approval…)")
    return Row("login", text, actions=(StartAtLogin(state != "on"),), is_checked=state == "on")
