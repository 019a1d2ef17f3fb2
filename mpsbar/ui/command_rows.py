"""The menu's rows below the processes: Connect, Alerts, Report, Settings …; and Welcome. Pure."""

from collections.abc import Iterator

from mpsbar.core.actions import ChangeSetting, Command, Connect, InspectPythons, StartAtLogin
from mpsbar.core.events import Alert, Event
from mpsbar.core.snapshot import Snapshot
from mpsbar.language import _
from mpsbar.ui.rows import Row, UiState
from mpsbar.ui.settings_rows import build_settings
from mpsbar.ui.text import wording
from mpsbar.ui.text.alerts import say_alert_in_a_line
from mpsbar.ui.text.cells import cut_middle
from mpsbar.ui.text.login import login_title

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
        Row("settings", _("Settings"), children=tuple(build_settings(ui_state))),
        Row("about", _("About mpsbar"), actions=(Command.SHOW_ABOUT,)),
        Row("quit", _("Quit mpsbar"), actions=(Command.QUIT,), shortcut="q"),
    )


def _recent_alerts(snapshot: Snapshot, delivery: str) -> Iterator[Row]:
    """Lists the last alerts, newest first, whether macOS showed them or not."""
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


def build_welcome(snapshot: Snapshot, ui_state: UiState) -> tuple[Row, ...]:
    """Returns the first steps; none once an environment is connected and mpsbar opens at login
    (where that is possible), or when the person has hidden them."""
    is_done = bool(ui_state.enabled) and ui_state.login in ("on", "unavailable")
    if not ui_state.settings.welcome or ui_state.enabled is None or is_done:
        return ()
    is_on = ui_state.login == "on"
    alerts = ui_state.settings.alerts
    login = Row(
        "welcome-login", login_title(), actions=(StartAtLogin(not is_on),), is_checked=is_on
    )
    return (
        Row("welcome", _("Welcome to mpsbar")),
        Row(
            "welcome-connect", wording.found_pythons(len(ui_state.pythons or ())),
            children=_list_pythons("welcome", snapshot, ui_state), room=_PYTHON_ROOM,
        ),
        *(() if ui_state.login in (None, "unavailable") else (login,)),
        Row(
            "welcome-alerts", _("Show Notifications"),
            actions=(ChangeSetting("alerts", not alerts),), is_checked=alerts,
        ),
        Row("welcome-hide", _("Hide This"), actions=(ChangeSetting("welcome", False),)),
    )  # fmt: skip


def _build_connect(snapshot: Snapshot, ui_state: UiState) -> Row:
    """Returns a row that is always there, even while nothing runs."""
    children = _list_pythons("connect", snapshot, ui_state)
    return Row("connect", _("Connect an Environment"), children=children, room=_PYTHON_ROOM)


def _list_pythons(key: str, snapshot: Snapshot, ui_state: UiState) -> tuple[Row, ...]:
    enabled = ui_state.enabled or ()
    pythons = dict.fromkeys((*enabled, *(ui_state.pythons or ())))
    rows = []
    for number, python in enumerate(list(pythons)[:_MAX_PYTHONS]):
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
