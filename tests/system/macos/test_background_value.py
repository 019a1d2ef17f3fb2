"""What is slow to read never holds up a look, and an old value stands until the new one is there."""

import threading

import pytest

from mpsbar.system import read_timeouts
from mpsbar.system.read_timeouts import BackgroundValue

TIMEOUT = 60.0


@pytest.fixture
def slow(monkeypatch, clock):
    """A value whose reading waits for the test."""
    monkeypatch.setattr(read_timeouts, "BACKGROUND_SECONDS", 0.01)
    gate, answers = threading.Semaphore(0), []

    def read():
        assert gate.acquire(timeout=TIMEOUT)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    value = BackgroundValue(read, 30.0, clock)
    value.gate, value.answers = gate, answers
    return value


def let_in(value, answer):
    value.answers.append(answer)
    reading = value._reading
    value.gate.release()
    reading.join(TIMEOUT)


def test_it_is_unknown_until_it_is_there_and_stands_until_the_next(slow, clock):
    assert slow.get() is None
    let_in(slow, 1)
    assert (slow.get(), slow.failure) == (1, None)
    clock.now += 29
    assert slow.get() == 1
    assert slow._reading is None  # not due
    clock.now += 1
    assert slow.get() == 1  # the next is on its way
    let_in(slow, 2)
    assert slow.get() == 2


def test_one_that_hangs_is_not_started_twice(slow, clock):
    slow.get()
    first = slow._reading
    clock.now += 1000
    assert slow.get() is None
    assert slow._reading is first
    let_in(slow, 1)


def test_a_failure_is_unknown(slow, clock):
    slow.get()
    let_in(slow, RuntimeError("broken"))
    assert (slow.get(), slow.failure) == (None, "RuntimeError: broken")
    clock.now += 31
    slow.get()
    let_in(slow, 5)
    assert (slow.get(), slow.failure) == (5, None)


def test_a_slow_budget_costs_no_other_value(mac, make_computer, monkeypatch):
    monkeypatch.setattr(read_timeouts, "BACKGROUND_SECONDS", 0.01)
    mac.set_sysctl("kern.memorystatus_vm_pressure_level", 4)
    gate = threading.Event()
    computer = make_computer(read_budget=lambda: gate.wait(TIMEOUT) and 1 << 33)
    machine = computer.read_machine()
    assert (machine.pressure, machine.gpu.memory_budget) == ("critical", None)
    reading = computer._budget._reading
    gate.set()
    reading.join(TIMEOUT)
    assert computer.read_machine().gpu.memory_budget == 1 << 33


def test_a_reading_that_hangs_in_iokit_keeps_the_next_one_out(mac, computer):
    mac.set_memory()
    assert computer._gpu._in_use.acquire(blocking=False)
    computer.read_machine()
    assert "an earlier reading has not ended" in computer.problems[0].text
    assert computer.read_gpu_clients() is None
    computer._gpu._in_use.release()
    computer.read_machine()
    assert computer.problems == ()
