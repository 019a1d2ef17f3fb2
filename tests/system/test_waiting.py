"""A signal whose handler has run before the wait begins, as interrupt_main() of another thread does."""

import signal
import subprocess
import sys
from concurrent.futures import Future

import pytest
from worker_kit import ROOT, TIMEOUT

from mpsbar.system.waiting import as_completed, wait_for_result

CODE = """
import _thread, threading
from concurrent.futures import Future
from mpsbar.system import waiting
never = {never}
try:
    threading.Timer(0.3, _thread.interrupt_main).start()
    {wait}
except KeyboardInterrupt:
    print("ended")
"""


@pytest.mark.parametrize(
    ("never", "wait"),
    [
        ("Future()", "waiting.wait_for_result(never)"),
        ("Future()", "list(waiting.as_completed([never]))"),
        ("threading.Event()", "waiting.wait_for_event(never)"),
    ],
)
def test_a_signal_that_interrupts_nothing_ends_the_wait(never, wait):
    command = [sys.executable, "-c", CODE.format(never=never, wait=wait)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("ended\n", "")


def test_results_come_as_they_are_done():
    first, second = Future(), Future()
    second.set_result(2)
    found = as_completed([first, second])
    assert next(found) is second
    first.set_exception(ValueError("planted"))
    assert next(found) is first
    assert wait_for_result(second) == 2
    with pytest.raises(ValueError, match="planted"):
        wait_for_result(first)
