"""Run a command of mpsbar, also on a terminal of its own."""

import contextlib
import os
import pty
import subprocess
import sys

from worker_kit import ROOT

IDLE = "import time\nwhile True: time.sleep(0.05)\n"


def mpsbar(*arguments, env):
    command = [sys.executable, "-m", "mpsbar", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, timeout=120)


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
