"""What came of a Free or a limit, in words."""

from typing import get_args

import pytest
from samples import GB

from mpsbar.core.actions import Freed, FreeState, LimitState
from mpsbar.ui.text import outcomes


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Freed(1, "a", "done", int(3.1 * GB), 0.04), "freed 3.1 GB in 40 ms"),
        (Freed(1, "a", "done", 0, 0.001, pinned=0), "freed 0 B in 1 ms"),
        (
            Freed(1, "a", "done", 0, 0.001, collected=False, gui_toolkit="Tk"),
            "freed 0 B in 1 ms; gc.collect() skipped: it can crash a program that uses Tk",
        ),
        (
            Freed(1, "a", "done", 0, 0.001, collected=False, main_was_waiting=True),
            "freed 0 B in 1 ms; gc.collect() skipped: the main thread was waiting",
        ),
        (
            Freed(1, "a", "done", 0, 0.001, collected=False),
            "freed 0 B in 1 ms; gc.collect() skipped: the main thread couldn't be reached",
        ),
        (
            Freed(1, "a", "done", 2 * GB, 0.04, pinned=int(1.5 * GB)),
            "freed 2.0 GB in 40 ms; 1.5 GB can't be returned yet: live tensors share those blocks",
        ),
        (
            Freed(1, "a", "busy", 0, 5.0, reason="thread_computing", where="T-1, app.py:3 in f"),
            "busy: another thread is computing (T-1, app.py:3 in f); tried for 5.0 s; nothing was freed",
        ),
        (
            Freed(1, "a", "busy", 736 << 10, 5.0, reason="main_unproven", where="a.py:3 in f"),
            "busy: the main thread couldn't be shown to be waiting (a.py:3 in f); tried for 5.0 s; freed only 736 kB",
        ),
        (Freed(1, "a", "ended"), "the process has ended"),
        (
            Freed(1, "a", "waiting", 0, 5.0, reason="main_computing", where="a.py:3", waits=595),
            "busy: the main thread is computing (a.py:3); it will be freed when possible, within 10 min",
        ),
        (Freed(1, "a", "cancelled"), "Free When Possible was canceled"),
        (
            Freed(1, "a", "done", 2 * GB, 0.04, when_possible=True),
            "freed 2.0 GB in 40 ms, at the first safe moment",
        ),
        (
            Freed(1, "a", "busy", reason="main_computing", where="train.py:42 in step"),
            "busy: the main thread is computing (train.py:42 in step); nothing was freed",
        ),
        (
            Freed(1, "a", "busy", reason="of a newer agent"),
            "busy: no safe moment was found; nothing was freed",
        ),
        (
            Freed(1, "a", "gone"),
            "no connected process has this PID (run mpsbar status to list them)",
        ),
        (
            Freed(1, "a", "silent", seconds=30.0),
            "no answer within 30 s; the cache may still be freed later",
        ),
        (Freed(1, "a", "refused", error="no way"), "couldn't connect: no way"),
        (Freed(1, "a", "failed", error="it broke"), "failed: it broke"),
    ],
)
def test_every_ending_of_a_free_has_its_sentence(outcome, text):
    assert outcomes.say_freed(outcome) == text


def test_every_recorded_state_of_a_free_and_a_limit_has_words():
    states = {*get_args(FreeState), *get_args(LimitState)} - {"done", "waiting", "cancelled"}
    assert {state: outcomes.say_not_done(state) for state in states} == {
        "busy": "busy",
        "gone": "not connected",
        "ended": "the process has ended",
        "silent": "no answer",
        "refused": "couldn't connect",
        "failed": "failed",
        "refilled": "the cache filled up again each time",
        "above": "it holds more than that",
        "impossible": "nothing there can be limited",
    }
