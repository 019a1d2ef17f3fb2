"""Run a command of mpsbar, connected only to the workers of the test."""

import subprocess
import sys

import pytest
from worker_kit import ROOT, TIMEOUT

# A reading waits half a second for workers; on busy cores one that is well may need more.
PATIENT = """
import sys
from mpsbar.workers.poll import WorkerPoll
WorkerPoll.poll.__defaults__ = (None, 60.0)
sys.argv[0] = "mpsbar"
from mpsbar.__main__ import main
sys.exit(main())
"""


@pytest.fixture
def mpsbar(workers):
    def run(*arguments, is_patient=True, **extra):
        how = ["-c", PATIENT] if is_patient else ["-m", "mpsbar"]
        return subprocess.run(
            [sys.executable, *how, *arguments],
            env=workers.env(**extra), capture_output=True, text=True, cwd=ROOT, timeout=TIMEOUT,
        )  # fmt: skip

    return run
