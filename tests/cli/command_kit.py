"""Run a command of mpsbar, connected only to the workers of the test, also on a terminal of its own."""

import contextlib
import os
import pty
import subprocess
import sys

from fleet_kit import PATIENT_MPSBAR
from worker_kit import ROOT, TIMEOUT

IDLE = "import time\nwhile True: time.sleep(0.05)\n"
# With these a person names a Python: none is looked at but what a test names.
NO_ACTIVE_PYTHON = {"VIRTUAL_ENV": None, "CONDA_PREFIX": None}


def run_command(workers, *arguments, patient=True, seconds=TIMEOUT, popen=None, **env):
    """What became of `mpsbar …`. A variable of `env` that is None is taken away.

    `patient`: it waits for workers and for the system as long as a busy machine may need.
    """
    command = PATIENT_MPSBAR if patient else [sys.executable, "-m", "mpsbar"]
    return subprocess.run(
        [*command, *arguments], env=workers.env(**env), timeout=seconds,
        **{"capture_output": True, "text": True, "cwd": ROOT} | (popen or {}),
    )  # fmt: skip


def shown_on_a_terminal(workers, *arguments, until, also=b"", code=None, end=b"\x03", **extra):
    """What `mpsbar …` writes to a terminal: `until` so often and `also`, something more, Ctrl-C."""
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(ROOT)
        env = workers.env(TERM="xterm", **extra)
        how = ["-m", "mpsbar"] if code is None else ["-c", code]
        os.execve(sys.executable, [sys.executable, *how, *arguments], env)
    shown, (text, times) = b"", until
    with contextlib.suppress(OSError):  # a terminal whose program has ended
        while shown.count(text) < times or also not in shown:
            shown += os.read(terminal, 65536)
        shown += os.read(terminal, 65536)
        os.write(terminal, end)
        while chunk := os.read(terminal, 65536):
            shown += chunk
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 0, (code, shown)
    assert b"Traceback" not in shown
    return shown.decode()
