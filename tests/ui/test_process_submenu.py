"""What is offered for one process: free, tensors, stop, connect."""

from dataclasses import replace

import pytest
from samples import GB, MB, make_snapshot
from ui.menu_kit import APP, rows, worker

from mpsbar.core.actions import FindTensors, Freed, Stop, Stopped, TensorGroup, Tensors
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import LastFree, WaitingFree
from mpsbar.ui.menu import build_menu
from mpsbar.ui.process_submenu import TENSOR_ROWS


def test_without_its_start_a_process_is_not_offered_to_be_stopped():
    assert "stop-4711" not in rows(build_menu(make_snapshot(worker(process=None)), APP))


def test_the_second_stop_is_firmer():
    seen = make_snapshot(worker(), stopped={4711: Stopped(4711, "train.py", "asked")})
    found = rows(build_menu(seen, APP))
    assert found["stop-4711"].actions == (Stop(4711, 100.0, "train.py", firmly=True),)
    assert found["worker-4711"].cells[3].endswith("asked to stop (SIGINT)")
    earlier = Stopped(4711, "old.py", "asked", started=50.0)  # of another process with its pid
    assert rows(build_menu(make_snapshot(worker(), stopped={4711: earlier}), APP))[
        "stop-4711"
    ].actions == (Stop(4711, 100.0, "train.py"),)
    gone = make_snapshot(worker(), stopped={4711: Stopped(4711, "train.py", "another")})
    assert rows(build_menu(gone, APP))["stop-4711"].actions[0].firmly is False


def test_an_older_agent_is_offered_what_it_has():
    found = rows(build_menu(make_snapshot(worker(methods=frozenset(["hello", "stats"]))), APP))
    assert not {"free-4711", "tensors-4711"} & set(found)
    assert found["free-all"].actions == ()


def test_a_program_without_a_python_cannot_be_connected():
    paint = Process(4721, 7.0, "Paint", ("torch",))
    found = rows(build_menu(make_snapshot(processes=[paint]), APP))
    assert "connect-4721" not in found
    assert found["worker-4721"].tooltip == (
        "add `import mpsbar; mpsbar.attach()` to its code, if it is Python"
    )


@pytest.mark.parametrize(
    ("found", "pending", "lines"),
    [
        (None, False, ["Not counted yet"]),
        (None, True, ["Counting…"]),
        (Tensors(1, "busy", reason="main_computing", where="t.py:9 in step"), False,
         ["busy: the main thread is computing (t.py:9 in step)"]),
        (Tensors(1, "gone"), False, ["the process has ended"]),
        (Tensors(1, "failed", error="no way"), False, ["failed: no way"]),
        (Tensors(1, "done"), False, ["No live tensors"]),
        (
            Tensors(
                1, "done",
                tuple(TensorGroup("mps", "float32", f"{n}x{n}", n, n * GB) for n in range(10, 0, -1)),
                others=GB, not_visible={"mps": 512 * MB},
            ),
            False,
            ["10.0 GB  10 × float32 10×10  mps", "9.0 GB  9 × float32 9×9  mps",
             "8.0 GB  8 × float32 8×8  mps", "7.0 GB  7 × float32 7×7  mps",
             "6.0 GB  6 × float32 6×6  mps", "5.0 GB  5 × float32 5×5  mps",
             "4.0 GB  4 × float32 4×4  mps", "3.0 GB  3 × float32 3×3  mps",
             "4.0 GB  other tensors", "512 MB  not visible from Python"],
        ),
        (  # what was not looked at is not said to be invisible
            Tensors(1, "done", not_visible={"mps": 512 * MB}, cut_short=True), False,
            ["There are more: counting stopped early"],
        ),
    ],
)  # fmt: skip
def test_the_biggest_tensors(found, pending, lines):
    seen = make_snapshot(
        worker(1),
        tensors={} if found is None else {1: found},
        pending=frozenset([FindTensors(1)] if pending else []),
    )
    row = rows(build_menu(seen, APP))["tensors-1"]
    assert [child.text for child in row.children] == lines
    assert row.room == TENSOR_ROWS  # it is counted anew each time
    assert len(lines) <= TENSOR_ROWS


@pytest.mark.parametrize(
    ("reason", "is_offered"), [("main_computing", True), (None, True), ("free_threaded", False)]
)
def test_free_when_possible_is_offered_where_a_safe_moment_may_come(reason, is_offered):
    busy = replace(worker(), last_free=LastFree(1, 0.0, "busy", reason=reason))
    assert ("when-possible-4711" in rows(build_menu(make_snapshot(busy), APP))) is is_offered
    freed = {4711: Freed(4711, "train.py", "busy", reason=reason)}
    shown = rows(build_menu(make_snapshot(worker(), freed=freed), APP))
    assert ("when-possible-4711" in shown) is is_offered


@pytest.mark.parametrize(
    ("waiting", "tip"),
    [
        (WaitingFree(125.0), "Waits for a safe moment, up to 2 min more."),
        (
            WaitingFree(125.0, "thread_computing", "train.py:7 in step"),
            "Waits for a safe moment, up to 2 min more. Not freed yet: another thread is computing"
            " (train.py:7 in step).",
        ),
    ],
)
def test_a_free_that_waits_says_why(waiting, tip):
    seen = make_snapshot(replace(worker(), pending_free=waiting))
    row = rows(build_menu(seen, APP))["when-possible-4711"]
    assert (row.text, row.tooltip) == ("Cancel Free When Possible", tip)
