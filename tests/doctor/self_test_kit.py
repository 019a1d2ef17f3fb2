"""Asks `mpsbar doctor --self-test` as a person does."""

import subprocess
import sys

from worker_kit import ROOT


def doctor(*arguments, env):
    command = [sys.executable, "-m", "mpsbar", "doctor", "--self-test", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, timeout=120)
