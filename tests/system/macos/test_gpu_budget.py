"""The one number of Metal's, with a small double of PyObjC's two modules."""

import sys
import threading
from contextlib import contextmanager
from types import ModuleType

import pytest

from mpsbar.monitor import Monitor
from mpsbar.system import read_timeouts
from mpsbar.system.macos import gpu


class Bridge:
    """PyObjC as far as it is used: a pool, and a device or none."""

    def __init__(self, monkeypatch):
        self.size = 55662788608
        self.has_device = True
        self.pools = self.devices = 0
        objc, module = ModuleType("objc"), ModuleType("Metal")
        objc.autorelease_pool = self._pool
        module.MTLCreateSystemDefaultDevice = self._create
        monkeypatch.setitem(sys.modules, "objc", objc)
        monkeypatch.setitem(sys.modules, "Metal", module)

    @contextmanager
    def _pool(self):
        self.pools += 1
        try:
            yield
        finally:
            self.pools -= 1

    def _create(self):
        assert self.pools == 1
        self.devices += 1
        return self if self.has_device else None

    def recommendedMaxWorkingSetSize(self):  # noqa: N802 - its name in Metal
        if isinstance(self.size, Exception):
            raise self.size
        return self.size


@pytest.fixture
def bridge(monkeypatch):
    return Bridge(monkeypatch)


def test_the_budget_of_a_64_gb_m5_pro(bridge):
    assert gpu.read_budget() == 55662788608
    assert bridge.pools == 0


@pytest.fixture
def read_budget_and_problems(bridge, mac, make_computer):
    """Reads the budget as a scan does, and the problems that are reported."""

    def read():
        mac.set_memory()
        computer = make_computer(read_budget=gpu.read_budget)
        budget = computer.read_machine().gpu.memory_budget
        return budget, [f"{problem.reader}: {problem.text}" for problem in computer.problems]

    return read


@pytest.mark.parametrize(
    ("size", "why"),
    [
        (0, "OSError: Metal says 0"),
        (-1, "OSError: Metal says -1"),
        (None, "OSError: Metal says None"),
        ("much", "OSError: Metal says much"),
        (RuntimeError("objc"), "RuntimeError: objc"),
    ],
)
def test_a_budget_that_is_none(bridge, read_budget_and_problems, size, why):
    bridge.size = size
    assert read_budget_and_problems() == (None, [f"memory_budget: {why}"])
    assert bridge.pools == 0


def test_without_a_device(bridge, read_budget_and_problems):
    bridge.has_device = False
    assert read_budget_and_problems() == (
        None,
        ["memory_budget: OSError: Metal has no device here"],
    )


@pytest.mark.parametrize("missing", ["objc", "Metal"])
def test_without_pyobjc(read_budget_and_problems, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    budget, (problem,) = read_budget_and_problems()
    assert budget is None
    assert missing in problem


def test_with_a_budget_there_is_nothing_to_say(read_budget_and_problems):
    assert read_budget_and_problems() == (55662788608, [])


def test_it_is_read_again_after_minutes(bridge, mac, make_computer, clock):
    computer = make_computer(read_budget=gpu.read_budget)
    assert computer.read_machine().gpu.memory_budget == 55662788608
    bridge.size = 60 << 30  # an administrator has set iogpu.wired_limit_mb
    clock.now += 179
    assert computer.read_machine().gpu.memory_budget == 55662788608
    clock.now += 1
    assert computer.read_machine().gpu.memory_budget == 60 << 30
    assert bridge.devices == 2


def test_what_cannot_be_read_is_not_asked_for_all_the_time(bridge, mac, make_computer):
    bridge.has_device = False
    computer = make_computer(read_budget=gpu.read_budget)
    for _ in range(3):
        assert computer.read_machine().gpu.memory_budget is None
    assert bridge.devices == 1


def test_one_reading_waits_for_metals_first_device_and_a_tick_does_not(
    mac, make_computer, monkeypatch, workers
):
    """It may take a second; the tenth of a second is for ticks."""
    mac.set_memory()
    monkeypatch.setattr(read_timeouts, "BACKGROUND_SECONDS", 0.0)
    answer = threading.Event()

    def read_budget():
        assert answer.wait(60)
        return 7

    ticking = Monitor(computer=make_computer(read_budget=read_budget))
    assert ticking.tick().machine.gpu.memory_budget is None
    once = Monitor(computer=make_computer(read_budget=read_budget))
    join = threading.Thread.join

    def answer_after_a_tick_would_have_gone_on(thread, seconds=None):
        if seconds == 3.0:
            answer.set()
        join(thread, 60 if seconds == 3.0 else seconds)  # a busy machine

    monkeypatch.setattr(threading.Thread, "join", answer_after_a_tick_would_have_gone_on)
    budget = once.read_once().machine.gpu.memory_budget
    answer.set()
    for monitor in (ticking, once):
        monitor.close()
    assert budget == 7
