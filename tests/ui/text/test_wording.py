"""Words that are used everywhere, as literals: names, what runs here."""

from datetime import datetime

import pytest
from samples import MB, make_process
from ui.text.scene_kit import process

from mpsbar.core.findings import Reason
from mpsbar.core.host_readings import HostReading
from mpsbar.core.snapshot import Snapshot
from mpsbar.ui.text import hosts, wording
from mpsbar.ui.text.alerts import say_reason
from mpsbar.ui.text.wording import how_to_connect


def test_children_are_summed_only_if_all_are_known():
    known, unknown = process(footprint=MB), process(footprint=None)
    assert wording.charged_together((known, known)) == "≤ 2.0 MB"
    assert wording.charged_together((known, unknown)) == "?"


@pytest.mark.parametrize("time", [None, float("nan"), float("inf"), -1e18, 1e18])
def test_a_time_that_no_clock_shows_is_unknown_wherever_it_is_said(time):
    assert wording.clock(time) == wording.clock(time, seconds=True) == "?"
    since = HostReading("studio", answered_at=time)
    assert hosts.say_since(since) == ("no answer" if time is None else "no answer since ?")
    slowed = Reason("slowed", "warning", {"since": time})
    assert say_reason(slowed, "a") == "a slowed from ? to ? at ?"


def test_a_time_of_day_with_and_without_its_seconds():
    noon = datetime(2026, 3, 4, 12, 0, 5).timestamp()  # noqa: DTZ001 - the clock on the wall
    assert wording.clock(noon) == "12:00"
    assert wording.clock(noon, seconds=True) == "12:00:05"


@pytest.mark.parametrize(
    ("frameworks", "text"),
    [
        ([("torch",)], "1 PyTorch process, not connected"),
        ([("mlx",)], "1 MLX process, not connected"),
        ([("torch",), ("mlx",)], "2 PyTorch or MLX processes, not connected"),
    ],
)
def test_what_is_running_is_called_by_its_name(frameworks, text):
    found = tuple(process(n, frameworks=names) for n, names in enumerate(frameworks, 1))
    assert wording.found(Snapshot(0.0, processes=found)) == text


# With the home /Users/jane; the agent shortens it in its record by the same function.
HOMES = [
    ("/Users/jane/venv", "~/venv"),
    ("A=/Users/jane/x:/Users/jane/y", "A=~/x:~/y"),
    ("in '/Users/jane'", "in '~'"),
    ("run `/Users/jane/venv/bin/python -m pip`", "run `~/venv/bin/python -m pip`"),
    ("[/Users/jane/x,/Users/jane/y]</Users/jane>", "[~/x,~/y]<~>"),
    ("it is in /Users/jane.", "it is in ~."),
    ("/Users/jane.old/x", "/Users/jane.old/x"),
    ("/Users/jane-2/x", "/Users/jane-2/x"),
    ("/Users/janet/x", "/Users/janet/x"),
    ("/mnt/Users/jane/x", "/mnt/Users/jane/x"),
]


@pytest.mark.parametrize(("text", "short"), HOMES)
def test_the_home_is_a_tilde(text, short):
    assert wording.shorten_home(text, "/Users/jane/") == short
    assert wording.shorten_home(text, "") == text
    assert wording.shorten_home(text, None) == text


PYTHON = "/Users/me/my envs/torch/bin/python"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            "script",
            "mpsbar enable --python '/Users/me/my envs/torch/bin/python', then restart it "
            "(or for one run: mpsbar run '/Users/me/my envs/torch/bin/python' …)",
        ),
        (
            "notebook",
            "mpsbar enable --python '/Users/me/my envs/torch/bin/python' && mpsbar enable --jupyter, "
            "then restart the kernel",
        ),
        (
            "server",
            "mpsbar enable --python '/Users/me/my envs/torch/bin/python', then restart the server",
        ),
    ],
)
def test_each_kind_has_its_way(kind, text):
    assert how_to_connect(PYTHON, kind) == text


def test_what_is_enabled_and_starting_needs_nothing():
    process = make_process(python=PYTHON, is_enabled=True, is_starting=True)
    nothing = "nothing to do: it connects automatically once it has finished importing"
    assert wording.how_to_connect_process(process) == nothing
    assert wording.how_to_connect_in_menu(process) == nothing
    assert wording.unconnected(process) == f"starting: {nothing}"
    assert wording.not_connected(process) == "starting (torch)"


def test_what_was_enabled_after_its_start_is_restarted():
    process = make_process(python=PYTHON, is_enabled=True)
    text = "restart it: its environment is enabled (if that does not help: mpsbar doctor)"
    assert wording.how_to_connect_process(process) == text
    assert wording.how_to_connect_in_menu(process) == "Restart it: its environment is connected"
    assert wording.not_connected(process) == "not connected (torch)"
