"""A command under a parent that stays out of its way: compared with the same command alone.

A real bash on a real pseudo-terminal does the job control; the command tells what reached it.
"""

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time

import pytest
from worker_kit import ROOT, TIMEOUT, wait_for

from mpsbar.system import foreground

# Tells every signal it gets, with a number, and lives until SIGUSR2 or the end of its input.
CHILD = """
import os, signal, sys, time
def tell(number, frame):  # not by print: the signal may come while one is being printed
    os.write(1, b"got %s\\n" % signal.Signals(number).name.encode())
    if number == signal.SIGUSR2: sys.exit(17)
for number in (1, 2, 3, 15, 10, 12, 18):
    if signal.getsignal(number) != signal.SIG_IGN: signal.signal(number, tell)
print("ready", os.getpid(), os.getpgrp() == os.tcgetpgrp(0) if os.isatty(0) else "", flush=True)
while True: time.sleep(0.02)
"""
PARENT = """
import os, sys
from mpsbar.system.foreground import run_command, exit_like
print("parent", os.getpid(), flush=True)
end = run_command(sys.argv[1:], os.environ)
print("summary", flush=True)
sys.exit(exit_like(end.status))
"""
# subprocess can do it from Python 3.11.
IN_A_GROUP = "import os, sys; os.setpgrp(); os.execv(sys.argv[1], sys.argv[1:])"


@pytest.fixture
def scripts(tmp_path):
    (tmp_path / "child.py").write_text(CHILD)
    (tmp_path / "parent.py").write_text(PARENT)
    return tmp_path


def build(scripts, is_parent, *command):
    command = command or (sys.executable, str(scripts / "child.py"))
    return [sys.executable, str(scripts / "parent.py"), *command] if is_parent else list(command)


def build_env():
    return os.environ | {"PYTHONPATH": str(ROOT), "PS1": "", "HISTFILE": "/dev/null"}


class Shell:
    """An interactive bash on a terminal of its own."""

    def __init__(self, folder):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], build_env())
        self.text = ""
        self.at = 0
        self.type("stty -echo; set +o history; echo shell-$((1+1))")
        self.wait(r"shell-2")

    def type(self, line):
        os.write(self.terminal, line.encode() + b"\n")

    def press(self, key):
        os.write(self.terminal, key)

    def wait(self, pattern):
        """The next match in what the terminal shows."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            match = re.compile(pattern).search(self.text, self.at)
            if match:
                self.at = match.end()
                return match
            left = deadline - time.monotonic()
            assert left > 0, f"no {pattern!r} in {self.text!r}"
            if select.select([self.terminal], [], [], min(left, 1.0))[0]:
                self.text += os.read(self.terminal, 4096).decode(errors="replace")

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


@pytest.fixture
def shell(scripts):
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    shell = Shell(scripts)
    yield shell
    shell.close()


def join(command):
    return " ".join(command)


def count(text, word):
    return text.count(f"got {word}")


@pytest.mark.parametrize("is_parent", [False, True], ids=["alone", "under us"])
def test_ctrl_c_ctrl_z_fg_and_the_status_at_a_terminal(shell, scripts, is_parent):
    shell.type(join(build(scripts, is_parent)) + "; echo status $?")
    child = int(shell.wait(r"ready (\d+) True")[1])
    shell.press(b"\x03")
    shell.wait("got SIGINT")
    shell.press(b"\x1c")
    shell.wait("got SIGQUIT")
    shell.press(b"\x1a")
    shell.wait(r"Stopped")
    shell.type("jobs -s | wc -l; fg")
    shell.wait(r"\b1\r\n")
    shell.wait("got SIGCONT")
    os.kill(child, signal.SIGUSR2)
    shell.wait("got SIGUSR2")
    if not is_parent:
        shell.wait("status|\n")
    shell.type("echo over $?")
    shell.wait("over (17|0)")
    told = {word: count(shell.text, word) for word in ("SIGINT", "SIGQUIT", "SIGCONT")}
    assert told == {"SIGINT": 1, "SIGQUIT": 1, "SIGCONT": 1}


@pytest.mark.parametrize("is_parent", [False, True], ids=["alone", "under us"])
def test_ctrl_c_that_ends_it_ends_the_line_of_the_shell_too(shell, scripts, is_parent):
    command = (sys.executable, "-c", "'import time; print(\"on\", flush=True); time.sleep(600)'")
    shell.type(join(build(scripts, is_parent, *command)) + "; echo not-reached-$((1+1))")
    shell.wait(r"on\r\n")
    shell.press(b"\x03")
    shell.wait("KeyboardInterrupt")
    shell.type("echo over $?")
    shell.wait("over 130")
    assert "not-reached-2" not in shell.text


@pytest.mark.parametrize("is_parent", [False, True], ids=["alone", "under us"])
def test_in_a_pipe_of_the_shell(shell, scripts, is_parent):
    code = "'import sys; print(sys.stdin.read().upper()); sys.exit(9)'"
    line = join(build(scripts, is_parent, sys.executable, "-c", code))
    shell.type(f"echo hello | {line} | cat; echo ends ${{PIPESTATUS[1]}}")
    shell.wait("HELLO")
    shell.wait("ends 9")


def test_a_signal_reaches_the_command_once(scripts):
    """To us alone and to the group; the command tells each before the next is sent."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
    with start(scripts) as process:
        read_until(process, b"ready")
        said = b""
        for number in numbers:
            for send in (os.kill, os.killpg):
                send(process.pid, number)
                said += read_until(process, b"got " + number.name.encode())
        os.kill(process.pid, signal.SIGUSR2)  # and what comes later is passed on too
        said += process.stdout.read()
        told = [said.count(b"got " + number.name.encode()) for number in numbers]
        assert told == [2] * len(numbers)
        assert process.wait(TIMEOUT) == 17
        assert b"summary" in said


def test_a_guard_that_gets_no_processor_for_a_while_changes_nothing(scripts):
    """It has not even begun when the group gets a signal."""
    late = PARENT.replace(
        "print(",
        "import time; from mpsbar.system import foreground; stand = foreground._stand_guard\n"
        "foreground._stand_guard = lambda *given: (time.sleep(1), stand(*given))\nprint(",
        1,
    )
    (scripts / "parent.py").write_text(late)
    with start(scripts) as process:
        read_until(process, b"ready")
        os.killpg(process.pid, signal.SIGINT)
        read_until(process, b"got SIGINT")
        os.kill(process.pid, signal.SIGUSR2)
        assert b"got SIGINT" not in process.stdout.read()
        assert process.wait(TIMEOUT) == 17


@pytest.mark.parametrize(
    ("code", "status"),
    [("import sys; sys.exit(0)", 0), ("import sys; sys.exit(200)", 200)]
    + [(f"import os; os.kill(os.getpid(), {n})", -n) for n in (1, 2, 6, 9, 11, 13, 15)],
)
def test_the_status_is_the_commands(scripts, code, status):
    restore = "import signal; [signal.signal(n, signal.SIG_DFL) for n in (2, 13)]; "
    command = build(scripts, True, sys.executable, "-c", restore + code)
    done = subprocess.run(command, env=build_env(), capture_output=True, timeout=TIMEOUT)
    assert done.returncode == status
    assert b"summary" in done.stdout


def test_a_stop_from_outside_stops_us_and_continues_with_us(scripts):
    with start(scripts) as process:
        child = int(read_until(process, b"ready").split()[1])
        os.kill(process.pid, signal.SIGTSTP)  # to us alone: the command stops, and then we
        wait_for(lambda: read_state(process.pid) == "T", "stop")
        assert read_state(child) == "T"
        os.kill(process.pid, signal.SIGCONT)
        read_until(process, b"got SIGCONT")
        os.kill(child, signal.SIGUSR2)
        assert process.wait(TIMEOUT) == 17


def test_the_command_ends_with_us_when_we_are_killed(scripts):
    with start(scripts) as process:
        child = int(read_until(process, b"ready").split()[1])
        process.kill()
        process.wait(TIMEOUT)
        wait_for(lambda: read_state(child) in ("", "Z"), "end of the command")


def test_nothing_of_ours_is_left_and_ignored_signals_stay_ignored(scripts):
    code = (
        "import os, signal; print(signal.getsignal(1) == signal.SIG_IGN,"
        " signal.getsignal(13) == signal.SIG_IGN, sorted(os.listdir('/proc/self/fd'))[:4])"
    )
    alone, under = (
        subprocess.run(
            ["sh", "-c", 'trap "" HUP; exec "$@"', "-", *build(scripts, p, sys.executable, "-c", code)],
            env=build_env(), capture_output=True, text=True, timeout=TIMEOUT,
        ).stdout.splitlines()
        for p in (False, True)
    )  # fmt: skip
    assert under[1:-1] == alone
    assert alone[0].startswith("True True")


def test_a_command_that_cannot_be_started(tmp_path):
    with pytest.raises(FileNotFoundError):
        foreground.run_command(["/nowhere/at-all"], os.environ)
    file = tmp_path / "text"
    file.write_text("no program")
    with pytest.raises(PermissionError):
        foreground.run_command([str(file)], os.environ)


def test_the_exit_reason_is_asked_before_the_pid_is_given_back():
    asked = []

    def read(pid):
        asked.append(read_state(pid))
        return (1, 13)

    end = foreground.run_command([sys.executable, "-c", "exit(3)"], os.environ, None, read)
    assert asked == ["Z"]
    assert end.exit_reason == (1, 13)
    assert os.waitstatus_to_exitcode(end.status) == 3
    assert end.most_resident > 1 << 20


def test_without_pythons_waitid_the_c_library_is_asked(monkeypatch):
    """As on macOS before Python 3.13; the numbers of the flags are macOS's, here Linux's are put in."""
    import ctypes

    for name in ("WEXITED", "WNOWAIT"):
        monkeypatch.setattr(foreground, f"_{name}", getattr(os, name))
    monkeypatch.setattr(foreground, "_WSTOPPED", os.WSTOPPED)
    library = ctypes.CDLL(None, use_errno=True)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert foreground._peek_by_library(library, process.pid) is None
    process.stdin.close()
    wait_for(lambda: foreground._peek_by_library(library, process.pid) is not None, "end")
    assert foreground._peek_by_library(library, process.pid) == 1  # CLD_EXITED
    assert process.wait(TIMEOUT) == 1
    with pytest.raises(OSError, match="waitid"):
        foreground._peek_by_library(library, process.pid)


def read_state(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


@contextlib.contextmanager
def start(scripts):
    """The parent in a process group of its own, its output in a pipe.

    Not in a session of its own: without a relative in its session the group is orphaned, and the
    kernel throws SIGTSTP away.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", IN_A_GROUP, *build(scripts, True)], env=build_env(),
        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, bufsize=0,
    )  # fmt: skip
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        process.stdout.close()


def read_until(process, word):
    deadline = time.monotonic() + TIMEOUT
    while select.select([process.stdout], [], [], deadline - time.monotonic())[0]:
        line = process.stdout.readline()
        if word in line:
            return line
        assert line, "it has ended"
    raise AssertionError(f"no {word!r}")
