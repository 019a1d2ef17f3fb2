"""The proof itself: which stacks count as a wait, and that the host's settings always come back."""

import asyncio
import concurrent.futures
import gc
import hashlib
import linecache
import queue
import select
import selectors
import subprocess
import sys
import threading
import time

import pytest
from worker_kit import wait_for

from mpsbar.agent import gc_pause, gil_io, host_frames, host_settings, idle_check, known_waits

FOLDER = "/no/torch/here/"


class Parked:
    """A thread in a wait that the test ends; what the proof says of it."""

    def __init__(self, work):
        self.before = set(sys._current_frames())
        self.thread = threading.Thread(target=work, daemon=True, name="the thread")
        self.thread.start()
        # Its number may be that of one that was just ending.
        self.skip = self.before - {self.thread.ident} | {threading.get_ident()}
        self.waits = known_waits.find_waits()

    def reason(self):
        try:
            idle_check.check_others(self.waits, self.skip, FOLDER)
        except idle_check.NotIdleError as computing:
            return computing.code, computing.where
        return None

    def wait_idle(self):
        wait_for(lambda: self.reason() is None, f"parked, but {self.reason()}")


@pytest.fixture(autouse=True)
def release():
    """Ends the waits of a test, and sees its threads gone: idents are used again."""
    before, frames = set(threading.enumerate()), set(sys._current_frames())
    event = threading.Event()
    yield event
    event.set()
    wait_for(lambda: set(threading.enumerate()) <= before, "end of its threads")
    # One that is listed no more has its frame for a moment.
    wait_for(lambda: set(sys._current_frames()) <= frames, "end of their frames")


def in_condition(release):
    release.wait()


def in_queue(release):
    tasks = queue.Queue()
    threading.Timer(0, lambda: (release.wait(), tasks.put(1))).start()
    tasks.get()


def in_join(release):
    thread = threading.Thread(target=release.wait, daemon=True)
    thread.start()
    thread.join()


def in_select(release):
    with selectors.DefaultSelector() as selector:
        while not release.is_set():
            selector.select(0.2)


def in_process_wait(release):
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    threading.Timer(0, lambda: (release.wait(), process.stdin.close())).start()
    process.wait()


def in_event_loop(release):
    async def main():
        while not release.is_set():
            await asyncio.sleep(0.2)

    asyncio.run(main())


@pytest.mark.parametrize(
    "work", [in_condition, in_queue, in_join, in_select, in_process_wait, in_event_loop]
)
def test_known_waits_are_seen(release, work):
    Parked(lambda: work(release)).wait_idle()


def test_an_idle_pool_is_seen(release):
    there = Parked(lambda: None)
    there.thread.join()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert list(pool.map(abs, [-1, -2])) == [1, 2]
        there.wait_idle()
        pool.submit(compute_until, release)
        wait_for(lambda: (there.reason() or ("", ""))[1].endswith("in compute_until"), "busy pool")
        release.set()


def sleep_until(release):
    while not release.is_set():
        time.sleep(0.05)


def select_until(release):
    while not release.is_set():
        select.select([], [], [], 0.05)


def spin_until(release):
    while not release.is_set():
        pass


def compute_until(release):
    while not release.is_set():
        hashlib.pbkdf2_hmac("sha256", b"", b"", 20_000)  # without the GIL


@pytest.mark.parametrize("work", [sleep_until, select_until])
def test_waits_called_from_user_code_are_seen(release, work):
    Parked(lambda: work(release)).wait_idle()


@pytest.mark.parametrize("work", [compute_until, spin_until])
def test_whatever_else_user_code_calls_counts_as_computing(release, work):
    there = Parked(lambda: work(release))
    wait_for(lambda: (there.reason() or ("", ""))[1].endswith(f" in {work.__name__}"), "its place")
    code, where = there.reason()
    assert code == "thread_unproven"
    assert where.startswith("the thread, ")


def start_thread(function, *arguments):
    """Start it; what is returned tells whether it has ended."""
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return lambda: not thread.is_alive()


def see_during(condition, start):
    """See it while what was started runs; if that ended first, as on busy cores, start it again."""
    has_ended = start()

    def is_seen():
        nonlocal has_ended
        if has_ended():
            has_ended = start()
        return condition() and not has_ended()

    wait_for(is_seen, "it while it ran")
    wait_for(has_ended, "its end")


def test_work_given_to_a_thread_or_a_pool_as_a_c_function_counts_as_computing():
    # Their top frames are of the standard library too: Thread.run and _WorkItem.run.
    there = Parked(lambda: None)
    there.thread.join()
    work = (hashlib.pbkdf2_hmac, "sha256", b"", b"", 1_000_000)

    def is_computing():
        return (there.reason() or ("", ""))[1].endswith("in run")

    see_during(is_computing, lambda: start_thread(*work))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        see_during(is_computing, lambda: pool.submit(*work).done)


def test_a_sleep_given_to_a_thread_or_a_pool_is_seen():
    there = Parked(lambda: None)
    there.thread.join()

    def is_idle():
        return there.reason() is None

    see_during(is_idle, lambda: start_thread(time.sleep, 1))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        see_during(is_idle, lambda: pool.submit(time.sleep, 1).done)


def test_a_wait_inside_autograd_counts_as_computing(release):
    # A Function of autograd whose backward waits: the op that called it is not over.
    code = compile("def backward(release): release.wait()", FOLDER + "autograd/f.py", "exec")
    space = {}
    exec(code, space)
    there = Parked(lambda: space["backward"](release))
    waits = threading.Condition.wait.__code__
    wait_for(lambda: sys._current_frames()[there.thread.ident].f_code is waits, "its wait")
    assert there.reason()[0] == "thread_computing"


def test_a_name_of_a_thread_that_is_foreign_code_is_not_asked(release):
    class Named(threading.Thread):
        @property
        def name(self):
            raise AssertionError("foreign code ran")

        @name.setter
        def name(self, value):
            pass

    there = Parked(lambda: None)
    there.thread.join()
    Named(target=spin_until, args=(release,), daemon=True).start()
    wait_for(lambda: there.reason() is not None, "its work")
    assert there.reason()[0] == "thread_unproven"


def test_without_a_gil_nothing_is_proven(monkeypatch):
    # No free-threaded Python is at hand: the one question it answers is replaced.
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(idle_check.NotIdleError, match="free_threaded"):
        idle_check.check_others(known_waits.find_waits(), set(sys._current_frames()), FOLDER)


def test_main_with_a_torch_frame_or_without_any_is_no_proof(monkeypatch):
    frame = sys._getframe()
    idle_check.check_main(frame, FOLDER)
    with pytest.raises(idle_check.NotIdleError, match=r"main_computing: test_idle_check\.py:"):
        idle_check.check_main(frame, __file__.rpartition("/")[0] + "/")
    monkeypatch.delattr(sys, "ps1", raising=False)
    with pytest.raises(idle_check.NotIdleError, match="outside Python"):
        idle_check.check_main(None, FOLDER)
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    idle_check.check_main(None, FOLDER)


def test_a_thread_that_went_on_in_the_same_frame_is_noticed(release):
    lock = threading.Lock()
    lock.acquire()

    def work():
        lock.acquire()
        while not release.is_set():
            pass

    there = Parked(work)
    there.wait_idle()
    in_c = {}
    proven = idle_check.check_others(there.waits, there.skip, FOLDER, in_c)
    assert list(in_c) == [there.thread.ident]
    idle_check.check_unchanged(proven, there.skip, in_c)
    lock.release()
    wait_for(lambda: there.reason() is not None, "its work")
    with pytest.raises(idle_check.NotIdleError, match="a thread woke up"):
        idle_check.check_unchanged(proven, there.skip, in_c)


def test_a_thread_that_moved_after_the_proof_is_noticed(release):
    there = Parked(release.wait)
    there.wait_idle()
    proven = idle_check.check_others(there.waits, there.skip, FOLDER)
    idle_check.check_unchanged(proven, there.skip)
    release.set()
    there.thread.join()
    with pytest.raises(idle_check.NotIdleError, match="a thread woke up"):
        idle_check.check_unchanged(proven, there.skip)


@pytest.mark.parametrize("interval", [1e-6, 1e-5, 1e-4, 3e-4, 0.0123])
def test_a_switch_interval_comes_back_to_the_microsecond(interval):
    usual = sys.getswitchinterval()
    try:
        sys.setswitchinterval(interval)
        before = sys.getswitchinterval()
        with idle_check.keep_gil(gil_io.sleep):
            pass
        assert sys.getswitchinterval() == before
    finally:
        sys.setswitchinterval(usual)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_gil_is_kept_and_the_settings_come_back(enabled):
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    gc.enable() if enabled else gc.disable()
    try:
        with pytest.raises(KeyError), idle_check.keep_gil(gil_io.sleep):
            assert sys.getswitchinterval() == host_settings.KEEP_SECONDS
            assert gc.get_threshold()[0] > gc_pause.NEVER
            assert gc.isenabled() is enabled
            raise KeyError
        assert sys.getswitchinterval() == interval
        assert gc.get_threshold() == thresholds
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_settings_that_main_was_interrupted_in_restoring_are_restored_by_the_agent(monkeypatch):
    interval = sys.getswitchinterval()
    real = idle_check.restore_interval
    monkeypatch.setattr(idle_check, "restore_interval", lambda: None)  # as if thrown out before it
    with idle_check.keep_gil(gil_io.sleep):
        pass
    assert sys.getswitchinterval() == host_settings.KEEP_SECONDS
    real()
    assert sys.getswitchinterval() == interval


def test_an_interval_the_host_sets_meanwhile_ends_the_attempt_and_stays():
    interval = sys.getswitchinterval()

    def host_sets(_):
        sys.setswitchinterval(0.01)

    try:
        with (
            pytest.raises(idle_check.NotIdleError, match="meanwhile"),
            idle_check.keep_gil(host_sets),
        ):
            raise AssertionError("it is not held")
        assert sys.getswitchinterval() == 0.01
        assert gc.isenabled()
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="collections start between bytecodes there")
def test_no_collection_starts_while_the_threads_are_listed():
    # A finalizer that lets go of the GIL there would dead-lock the process.
    inside = []

    def note(phase, _):
        if phase == "start":
            frame = sys._getframe(1)
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            inside.append((frame.f_code.co_name, line))

    old = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(1, 1000, 1000)
    try:
        for _ in range(200):
            host_frames.current_frames()
    finally:
        gc.set_threshold(*old)
        gc.callbacks.remove(note)
    assert gc.isenabled()
    assert any(name == "current_frames" for name, _ in inside)  # before and after it they may
    assert not [line for _, line in inside if "next(steps)" in line]


def test_the_loop_is_found_only_in_its_own_wait(release):
    found = []

    def run():
        async def main():
            found.append(asyncio.get_running_loop())
            while not release.is_set():
                await asyncio.sleep(0.2)

        asyncio.run(main())

    there = Parked(run)
    # The loop also stands in its wait, for no time, before it runs its first task.
    wait_for(lambda: found, "the coroutine")
    there.wait_idle()

    def loop_of(thread):
        stack = host_frames.read_stack(sys._current_frames()[thread.ident])
        return idle_check.find_idle_loop(stack, there.waits)

    assert wait_for(lambda: loop_of(there.thread), "the idle loop") is found[0]
    other = Parked(lambda: in_condition(release))
    other.wait_idle()
    assert loop_of(other.thread) is None
    assert idle_check.find_idle_loop([], there.waits) is None
    found[0].call_soon_threadsafe(spin_until, release)
    wait_for(lambda: loop_of(there.thread) is None, "busy loop")


def test_a_deep_stack_costs_no_call_for_each_frame_since_a_debugger_traces_every_one():
    names = {"look": lambda: host_frames.outermost_torch_frame(sys._getframe(), "/lib/torch/")}
    code = "def dive(depth): return look() if depth == 0 else dive(depth - 1)"
    exec(compile(code, "/lib/torch/deep.py", "exec"), names)
    calls = []
    before = sys.gettrace()
    sys.settrace(lambda frame, *_: calls.append(frame.f_code.co_filename))
    try:
        found = names["dive"](100)
    finally:
        sys.settrace(before)
    assert found is not None
    assert calls.count("/lib/torch/deep.py") == 101
    assert calls.count(host_frames.__file__) == 1
