"""Run a command of mpsbar, connected only to the workers of the test."""

import subprocess
import sys

import pytest
from worker_kit import ROOT, TIMEOUT


@pytest.fixture
def mpsbar(workers):
    def run(*arguments, **extra):
        return subprocess.run(
            [sys.executable, "-m", "mpsbar", *arguments],
            env=workers.env(**extra), capture_output=True, text=True, cwd=ROOT, timeout=TIMEOUT,
        )  # fmt: skip

    return run
