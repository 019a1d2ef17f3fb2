"""Connect an Environment, the welcome of the first run, and that no row asks for a command."""

import re
from dataclasses import replace
from typing import get_args

import pytest
from samples import SERVE, make_snapshot, make_training

from mpsbar.core.actions import ChangeSetting, Command, Connect, StartAtLogin
from mpsbar.core.events import EndedProcess
from mpsbar.core.fallbacks import FallbackOperation, Fallbacks
from mpsbar.core.machine import Problem
from mpsbar.core.settings import Settings
from mpsbar.core.verdicts import EndCode, EndVerdict
from mpsbar.ui.menu import build_menu
from mpsbar.ui.rows import UiState
from mpsbar.ui.text import dialogs

FIRST = UiState(
    is_clickable=True, login="off", pythons=("/v/bin/python", "/w/bin/python"), enabled=()
)


def welcome(ui_state, snapshot=None):
    return build_menu(snapshot or make_snapshot(), ui_state).sections[0]


def test_the_welcome_of_the_first_run():
    assert [str(row) for row in welcome(FIRST)] == [
        "Welcome to mpsbar",
        "Connect a Python (2 Found)   ▸ /v/bin/python · /w/bin/python · Other…",
        "Open at Login",
        "✓ Show Notifications",
        "Hide This",
    ]
    connect, login, alerts, hide = welcome(FIRST)[1:]
    assert [row.actions for row in connect.children] == [
        (Connect("/v/bin/python"),),
        (Connect("/w/bin/python"),),
        (Command.ASK_PYTHON,),
    ]
    assert login.actions == (StartAtLogin(True),)
    assert alerts.actions == (ChangeSetting("alerts", False),)
    assert hide.actions == (ChangeSetting("welcome", False),)


@pytest.mark.parametrize(
    "ui_state",
    [
        replace(FIRST, enabled=None),  # not read yet: nothing jumps
        replace(FIRST, settings=Settings(welcome=False)),
        replace(FIRST, enabled=("/v/bin/python",), login="on"),
        replace(FIRST, enabled=("/v/bin/python",), login="unavailable"),
        replace(FIRST, is_clickable=False),
    ],
)
def test_it_is_gone_when_done_or_hidden(ui_state):
    assert welcome(ui_state) == ()


def test_it_stays_while_something_is_left_to_do():
    assert welcome(replace(FIRST, enabled=("/v/bin/python",)))
    assert welcome(replace(FIRST, login="on"))
    found = [row.text for row in welcome(replace(FIRST, pythons=()))]
    assert found[1] == "Connect a Python with PyTorch or MLX"
    assert [row.text for row in welcome(replace(FIRST, pythons=None))] == found  # not looked yet
    assert [row.key for row in welcome(replace(FIRST, login="unavailable"))].count(
        "welcome-login"
    ) == 0


def test_an_environment_can_be_connected_at_all_times():
    ui_state = replace(FIRST, enabled=("/v/bin/python",), login="on")
    for seen in (make_snapshot(), make_snapshot(make_training()), make_snapshot(processes=[SERVE])):
        (row,) = [row for row in build_menu(seen, ui_state).rows if row.key == "connect"]
        assert str(row) == ("Connect an Environment   ▸ ✓ /v/bin/python · /w/bin/python · Other…")
    pending = replace(make_snapshot(), pending=frozenset({Connect("/w/bin/python")}))
    (row,) = [row for row in build_menu(pending, ui_state).rows if row.key == "connect"]
    assert row.children[1].text == "Connecting /w/bin/python…"
    assert row.children[1].actions == ()


def test_the_home_folder_is_the_one_that_the_front_end_read():
    ui_state = replace(FIRST, home="/w", pythons=("/w/bin/python", "/ww/bin/python"))
    (row,) = [row for row in build_menu(make_snapshot(), ui_state).rows if row.key == "connect"]
    assert [child.text for child in row.children] == ["~/bin/python", "/ww/bin/python", "Other…"]


def test_a_menu_full_of_pythons_keeps_its_room():
    many = tuple(f"/v{n}/bin/python" for n in range(40))
    (row,) = [
        r
        for r in build_menu(make_snapshot(), replace(FIRST, pythons=many)).rows
        if r.key == "connect"
    ]
    assert len(row.children) == row.room == 13


COMMAND = re.compile(
    r"\bmpsbar (status|run|enable|disable|doctor|probe|free|limit|why|top|report|--)\b"
)
MANY = [make_training(n) for n in range(100, 130)]
VALUES = {"text": "MPS backend out of memory", "signal": 11}


def make_ended(code, fallbacks=None):
    verdict = EndVerdict(code, "known", VALUES, ("last_words",), ("system_reports",), fallbacks)
    ended = EndedProcess(7, 1.0, "train.py", 900.0, how=code, verdict=verdict)
    return make_snapshot(ended=(ended,))


FIRST_ONLY = Fallbacks((FallbackOperation("aten::new", 1),), "2.13.0", is_counted=False)


@pytest.mark.parametrize(
    "seen",
    [
        make_snapshot(),
        make_snapshot(make_training()),
        make_snapshot(*MANY),
        make_snapshot(processes=[SERVE]),
        replace(make_snapshot(), processes=None),
        replace(make_snapshot(), problems=(Problem("workers", "x"),)),
        *map(make_ended, get_args(EndCode)),
        make_ended("exception", FIRST_ONLY),
        make_ended("exception", replace(FIRST_ONLY, operations=())),
        make_ended("exception", Fallbacks((), "2.13.0")),
    ],
)
def test_no_row_asks_for_a_command_that_the_app_alone_lacks(seen):
    left = list(build_menu(seen, FIRST).rows)
    while left:
        row = left.pop()
        assert not COMMAND.search(f"{row.text} {row.tooltip}"), row
        left += row.children


def test_a_fault_of_the_gpu_is_reported_from_the_menu():
    (row,) = [
        r for r in build_menu(make_ended("gpu_fault"), FIRST).rows if r.key.startswith("gone")
    ]
    assert "→ If it happens again, report it with Copy Diagnostics" in [
        child.text for child in row.children
    ]


def test_no_question_of_the_app_asks_for_one():
    for dialog in (
        dialogs.about("1"), dialogs.ask_connect(Connect("/v/bin/python")), dialogs.refuse_probe("busy"),
        dialogs.ask_python("x"),
    ):  # fmt: skip
        assert not COMMAND.search(dialog.text)
    assert not COMMAND.search(dialogs.running_notice().text)
