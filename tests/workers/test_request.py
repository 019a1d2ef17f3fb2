"""The count of a worker's tensors from the monitor's side: every ending is an outcome."""

import errno
import os
import sys

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worker_kit import ATTACH, wait_for

from mpsbar.core.actions import TensorGroup
from mpsbar.system.ownership import find_owner
from mpsbar.workers import request
from mpsbar.workers.parse import parse_freed, parse_limited, parse_tensors, parse_worker
from mpsbar.workers.request import find_tensors, has_ended

IDLE = "import time\nwhile True: time.sleep(0.05)\n"


def test_real_tensors(workers):
    worker = workers.start(
        # Of what torch brought along nothing is listed: on busy cores that alone takes too long.
        "import gc, torch\ngc.freeze()\nbig = torch.zeros(1024, 1024)\nsame = big[:10]\n"
        + ATTACH
        + IDLE
    )

    def count():
        """A count that was done and not cut short: beside a waiting main it has 0.2 s, on any machine."""
        counted = find_tensors(worker.pid)
        return counted if counted.state == "done" and not counted.cut_short else None

    found = wait_for(count, "whole count")
    assert TensorGroup("cpu", "float32", "1024x1024", 1, 4 << 20) in found.groups


def test_nobody_with_this_pid(workers):
    assert find_tensors(999999).state == "gone"


def test_the_silent(workers, monkeypatch):
    worker = workers.start(ATTACH + IDLE)
    worker.freeze()
    monkeypatch.setattr(request, "ASK_SECONDS", 0.3)
    assert find_tensors(worker.pid).state == "silent"
    worker.thaw()


def test_busy_with_its_reason():
    answer = {"state": "busy", "reason": {"code": "thread_computing", "where": "T-1\x1b[31m"}}
    found = parse_tensors(1, answer)
    assert (found.state, found.reason, found.where) == ("busy", "thread_computing", "T-1�[31m")


def test_a_key_in_the_name_of_a_thread_or_in_an_error_is_not_shown():
    secret = "hf_AbCdEfGhIjKlMnOpQrStUvWx"
    answer = {
        "state": "busy", "reason": {"code": "thread_computing", "where": f"upload {secret}"},
        "error": f"denied: {secret}",
    }  # fmt: skip
    worker = parse_worker(1, {}, {}, "live", 0.0)
    for found in (
        parse_tensors(1, answer),
        parse_freed(worker, answer),
        parse_limited(worker, 1, answer),
    ):
        assert found.where == "upload ***"
        assert found.error == "denied: ***"


def test_failed():
    assert parse_tensors(1, {"state": "failed", "error": "x"}).error == "x"
    assert parse_tensors(1, None).state == "failed"


def test_groups_that_make_no_sense_are_left_out():
    good = {"device": "mps", "dtype": "float32", "shape": "2x3", "count": 2, "bytes": 48}
    bad = [{**good, "count": -1}, {**good, "bytes": "48"}, {**good, "bytes": 2**70}, None, 7]
    found = parse_tensors(1, {"state": "done", "groups": [*bad, good], "others": {"bytes": 5},
                              "not_visible": {"mps": 7, "cuda": -1}, "cut_short": True})  # fmt: skip
    assert found.groups == (TensorGroup("mps", "float32", "2x3", 2, 48),)
    assert (found.others, found.not_visible, found.cut_short) == (5, {"mps": 7}, True)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
KEYS = ("state", "groups", "others", "not_visible", "cut_short", "reason", "error")


@given(st.dictionaries(st.sampled_from(KEYS), JSON) | JSON, st.booleans())
def test_whatever_it_says_is_an_outcome(answer, is_done):
    if is_done and isinstance(answer, dict):
        answer["state"] = "done"
    assert parse_tensors(1, answer).state in ("done", "busy", "failed")


@pytest.mark.parametrize("hint", [None, True, False])
def test_the_hint_reaches_the_agent(workers, hint):
    """Before torch 2.13, and for MLX on a Mac, only the outside knows who holds the GPU."""
    worker = workers.start(
        "import mpsbar.agent.methods as m\n"
        "class Hinted:\n"
        "    def __init__(self, hint, pause): self.hint = hint\n"
        "    def step(self): return {'state': 'failed', 'error': repr(self.hint)}\n"
        "m.TensorCensus = Hinted\n" + ATTACH + IDLE
    )
    assert find_tensors(worker.pid, hint).error == repr(hint)


@pytest.mark.skipif(sys.platform != "linux", reason="psutil raises this on Linux only")
def test_a_process_whose_pid_is_in_use_again_has_ended(monkeypatch):
    """psutil looks for /proc/PID/stat again when it was missing; by then it is the next one's."""

    def not_there(*_, **__):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(psutil._pslinux, "bcat", not_there)
    assert has_ended(os.getpid(), 0)
    assert find_owner(os.getpid()) is None
