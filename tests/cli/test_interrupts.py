"""Ctrl-C while mpsbar starts or ends: no traceback."""

import signal
import subprocess
import sys

import pytest
from worker_kit import ROOT, TIMEOUT

# Sends Ctrl-C to itself when the Nth module of mpsbar is looked for: no clock decides.
CODE = """
import os, signal, sys
from mpsbar.__main__ import main
class Interrupt:
    count = 0
    def find_spec(self, name, path=None, target=None):
        Interrupt.count += 1
        if Interrupt.count == {number}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
if {number} == 0:  # at the end, when Python itself shuts down
    import threading
    end = threading._shutdown
    def shutdown():
        os.kill(os.getpid(), signal.SIGINT)
        end()
    threading._shutdown = shutdown
sys.argv = ["mpsbar", "status"]
main()
"""


def as_a_person_starts_it():
    """Whoever runs the tests may have SIGINT ignored, as for a job of `&`."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("number", [0, 1, 2, 3, 5, 10, 20, 40, 80])
def test_ctrl_c_at_the_start_and_at_the_end(workers, number):
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(number=number)],
        env=workers.env(PYTHONPATH=str(ROOT)), capture_output=True, text=True, timeout=TIMEOUT,
        preexec_fn=as_a_person_starts_it,
    )  # fmt: skip
    assert done.returncode in (-signal.SIGINT, 130)
    assert done.stderr == ""


def test_where_it_is_ignored_it_stays_ignored(workers):
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(number=3)],
        env=workers.env(PYTHONPATH=str(ROOT)), capture_output=True, text=True, timeout=TIMEOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
