"""The rows that connect an environment, and the welcome of the first run. Pure."""

from pathlib import Path

from mpsbar.core.actions import AskPython, Choose, Connect, StartAtLogin
from mpsbar.core.snapshot import Snapshot
from mpsbar.language import _
from mpsbar.ui.rows import Row, UiState
from mpsbar.ui.text.wording import found_pythons, shorten, shorten_home

_MOST_PYTHONS = 12
_WIDTH = 70
# The Pythons, then Other…: none can be inserted while the menu is open.
ROOM = _MOST_PYTHONS + 1


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
            "welcome-connect", found_pythons(len(ui_state.pythons or ())),
            children=_list_pythons("welcome", snapshot, ui_state), room=ROOM,
        ),
        *(() if ui_state.login in (None, "unavailable") else (login,)),
        Row(
            "welcome-alerts", _("Show Notifications"), actions=(Choose("alerts", not alerts),),
            is_checked=alerts,
        ),
        Row("welcome-hide", _("Hide This"), actions=(Choose("welcome", False),)),
    )  # fmt: skip


def build_connect(snapshot: Snapshot, ui_state: UiState) -> Row:
    """At all times, also while nothing runs."""
    children = _list_pythons("connect", snapshot, ui_state)
    return Row("connect", _("Connect an Environment"), children=children, room=ROOM)


def _list_pythons(key: str, snapshot: Snapshot, ui_state: UiState) -> tuple[Row, ...]:
    enabled = ui_state.enabled or ()
    found = dict.fromkeys((*enabled, *(ui_state.pythons or ())))
    rows = []
    for number, python in enumerate(list(found)[:_MOST_PYTHONS]):
        action = Connect(python)
        text = shorten(shorten_home(python, str(Path.home())), _WIDTH)
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
    return (*rows, Row(f"{key}-other", _("Other…"), actions=(AskPython(),)))
