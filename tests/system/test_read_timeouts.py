"""A read that never comes back costs that read, and nothing else."""

import threading

import pytest
from worker_kit import wait_for

from mpsbar.system import read_timeouts
from mpsbar.system.read_timeouts import MAX_STUCK, ReadStuckError, TimeoutPool

# Time-outs for threads on a loaded machine; nothing here waits for them when all is well.
TIMEOUT = 60


def readers(stall_seconds=0.05):
    return TimeoutPool(stall_seconds)


def hang(gate):
    def read():
        assert gate.wait(TIMEOUT)
        return "late"

    return read


def threads():
    return {thread for thread in threading.enumerate() if thread.name == "mpsbar-read"}


def test_results_come_by_key_and_a_failure_is_a_result():
    some = readers(TIMEOUT)
    results = some.run([("a", lambda: 1), ("b", lambda: 1 // 0), ("c", lambda: None)])
    some.close()
    assert (results["a"], results["c"]) == (1, None)
    assert isinstance(results["b"], ZeroDivisionError)
    assert some.run([]) == {}


def test_one_stuck_read_does_not_stop_the_rest():
    some, gate = readers(), threading.Event()
    jobs = [("a", lambda: 1), ("stuck", hang(gate)), ("b", lambda: 2), ("c", lambda: 3)]

    def has_read_the_rest():
        """At once, unless a thread had to wait for a processor just there."""
        results = some.run(jobs, TIMEOUT)
        assert isinstance(results["stuck"], ReadStuckError)
        return (results["a"], results["b"], results["c"]) == (1, 2, 3)

    wait_for(has_read_the_rest, "the other three")
    gate.set()
    some.close()


@pytest.fixture
def processor(monkeypatch):
    """Reading threads get none until it is set, as beside many busy programs."""
    gate, run = threading.Event(), read_timeouts._ReadThread._run

    def starved(self):
        assert gate.wait(TIMEOUT)
        run(self)

    monkeypatch.setattr(read_timeouts._ReadThread, "_run", starved)
    yield gate
    gate.set()


def test_a_thread_that_waits_for_a_processor_does_not_hang(processor):
    some = readers()

    def start_reading():
        some._stall_seconds = TIMEOUT  # then a read that takes long is no matter
        processor.set()

    threading.Timer(0.5, start_reading).start()  # ten times as late as a read that hangs
    assert some.run([("a", lambda: 1), ("b", lambda: 2)], TIMEOUT) == {"a": 1, "b": 2}
    some.close()


def test_what_was_late_is_asked_again_the_next_time(processor):
    some, others, calls = readers(TIMEOUT), threads(), []
    assert some.run([("a", lambda: calls.append("late"))], seconds=0.2) == {}
    started = threads() - others
    processor.set()
    assert some.run([("a", lambda: 1)], TIMEOUT) == {"a": 1}
    some.close()
    for thread in started:
        thread.join(TIMEOUT)
    assert calls == []


def test_what_is_stuck_is_not_asked_again_until_it_came_back():
    some, gate, calls, others = readers(), threading.Event(), [], threads()

    def read():
        calls.append(1)
        assert gate.wait(TIMEOUT)
        return "back"

    for _ in range(3):
        assert isinstance(some.run([("x", read)], TIMEOUT)["x"], ReadStuckError)
    wait_for(lambda: calls, "the first read")
    assert isinstance(some.run([("x", read)], TIMEOUT)["x"], ReadStuckError)
    assert len(calls) == 1
    started = threads() - others
    gate.set()
    for thread in started:
        thread.join(TIMEOUT)
    some._stall_seconds = TIMEOUT
    assert some.run([("x", read)], TIMEOUT)["x"] == "back"
    some.close()


def test_a_thread_that_was_left_does_nothing_more():
    some, gate, done, left = readers(), threading.Event(), [], threading.Event()

    def read():
        """The second thread takes as long as it likes: only the first one hangs."""
        some._stall_seconds = TIMEOUT
        left.set()
        done.append("a")

    jobs = [("stuck", hang(gate)), ("a", read)]
    before = threads()
    wait_for(lambda: left.is_set() or (some.run(jobs, TIMEOUT) and left.is_set()), "the other read")
    some.close()
    started = threads() - before
    gate.set()
    for thread in started:
        thread.join(TIMEOUT)
    assert done == ["a"]  # once, by the thread that took over


def test_after_too_many_nothing_more_is_tried():
    some, gate = readers(0.02), threading.Event()
    jobs = [(number, hang(gate)) for number in range(MAX_STUCK + 3)]
    before = threads()
    for _ in range(2):

        def has_vital():
            results = some.run(
                [("vital", lambda: "answer"), *jobs, ("a", lambda: 1)], TIMEOUT, vital=1
            )
            vital = results.pop("vital", None)  # stuck: it had to wait for a processor
            assert all(isinstance(result, ReadStuckError) for result in results.values())
            assert len(results) == MAX_STUCK + 4
            return vital == "answer"

        wait_for(has_vital, "what is vital")
    # and the one for what is vital
    wait_for(lambda: len(threads() - before) <= MAX_STUCK + 1, "no more threads")
    gate.set()
    some.close()


def test_the_ceiling_ends_the_look_and_tells_what_was_not_done():
    for seconds in (0.1, 1.0, 10.0, 40.0):  # on a busy machine the first read may come too late
        some, gate = readers(TIMEOUT), threading.Event()
        results = some.run([("a", lambda: 1), ("slow", hang(gate)), ("b", lambda: 2)], seconds)
        assert some.run([("b", lambda: 2)], TIMEOUT) == {"b": 2}  # not behind the slow one
        gate.set()
        some.close()
        if results:
            break
    assert results == {"a": 1}


def test_what_hangs_at_the_ceiling_is_not_asked_again_and_again():
    """Or each look would leave one more thread behind."""
    some, gate, calls = readers(TIMEOUT), threading.Event(), []

    def read():
        calls.append(1)
        gate.wait(TIMEOUT)

    before = threads()
    assert some.run([("x", read)], 0.05) == {}
    wait_for(lambda: some.run([("x", read)], 0.05) and calls, "a thread that reads")
    for _ in range(5):
        assert isinstance(some.run([("x", read)], 0.05)["x"], ReadStuckError)
    assert len(calls) == 1
    wait_for(lambda: len(threads() - before) == 1, "one thread")
    gate.set()
    some.close()
