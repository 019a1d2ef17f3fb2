"""Run a command of mpsbar, connected only to the workers of the test."""

import subprocess
import sys

import pytest
from fake_torch import make_torch, working
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
def light_torch(workers):
    """For PYTHONPATH, where a command looks at Pythons beside what is tested: two seconds less a look."""
    return make_torch(workers.folder / "light torch", working())


@pytest.fixture
def mpsbar(workers):
    def run(*arguments, is_patient=True, **extra):
        how = ["-c", PATIENT] if is_patient else ["-m", "mpsbar"]
        return subprocess.run(
            [sys.executable, *how, *arguments],
            env=workers.env(**extra), capture_output=True, text=True, cwd=ROOT, timeout=TIMEOUT,
        )  # fmt: skip

    return run
