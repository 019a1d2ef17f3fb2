"""ssh asks a person for what it needs, one host after another, before anything is drawn."""

import contextlib
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import psutil
import pytest
from fleet_kit import MLX_WORKER, PATIENT_MPSBAR, run_mpsbar
from worker_kit import ROOT, TIMEOUT, need_module, read_command, wait_for

STATUS = '{"schema": 1, "time": 1, "machine": {"chip": "Apple CHIP"}, "workers": [], "processes": [], "health": {"level": "ok", "reasons": []}}'
ONCE = f"case $1 in status) echo '{STATUS}';; why) echo '[]';; free) echo '{{\"schema\": 1, \"freed\": []}}';; esac"
AGAIN = f"while echo '{STATUS}'; do sleep 1; done"


class Terminal:
    """A person at a terminal of their own, in front of one command."""

    def __init__(self, workers, *arguments, is_patient=True):
        command = PATIENT_MPSBAR if is_patient else [sys.executable, "-m", "mpsbar"]
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
        self.process = subprocess.Popen(
            [*command, *arguments], env=workers.env(TERM="xterm", LC_ALL="C.UTF-8"),
            cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - no other thread here holds a lock
        )  # fmt: skip
        os.close(theirs)
        self.seen = ""

    def wait_for(self, text):
        end = time.monotonic() + TIMEOUT
        while text not in self.seen:
            data = b""
            left = max(end - time.monotonic(), 0.0)
            if select.select([self._ours], [], [], left)[0]:
                with contextlib.suppress(OSError):  # the other end has gone
                    data = os.read(self._ours, 65536)
            assert data, (text, self.seen)
            self.seen += data.decode("utf-8", "replace")

    def type(self, text):
        self.press(f"{text}\n")

    def press(self, keys):
        os.write(self._ours, keys.encode())

    def end(self):
        """All that it printed until its end, and its exit code."""
        with contextlib.suppress(OSError):
            while data := os.read(self._ours, 65536):
                self.seen += data.decode("utf-8", "replace")
        return self.process.wait(timeout=TIMEOUT)

    def hang_up(self):
        """The window is closed."""
        os.close(self._ours)
        self._ours = -1

    def close(self):
        self.process.kill()
        self.process.wait(timeout=TIMEOUT)
        if self._ours != -1:
            os.close(self._ours)


def _take_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # ssh asks on /dev/tty


@pytest.fixture
def person(workers):
    made = []

    def make(*arguments, **more):
        made.append(Terminal(workers, *arguments, **more))
        return made[-1]

    yield make
    for terminal in made:
        terminal.close()


def find_socket_folder(process):
    """Where the ssh that is asking now will leave its connection."""
    for child in psutil.Process(process.pid).children():
        words = read_command(child)
        if "-S" in words:
            return Path(words[words.index("-S") + 1]).parent
    raise AssertionError("no ssh asks")


def has_connections(folder):
    """Whether an ssh in the background has its socket there: it says so in its title."""
    titles = (process.info["cmdline"] for process in psutil.process_iter(["cmdline"]))
    return any(str(folder) in " ".join(words or ()) for words in titles)


def test_a_key_and_a_passphrase_are_asked_for_one_after_another(ssh_hosts, person):
    ssh_hosts.add("good", ONCE)
    ssh_hosts.add("fresh", ONCE)
    ssh_hosts.add("locked", ONCE)
    ssh_hosts.make_unknown("fresh")
    ssh_hosts.lock_key("locked", "open sesame")
    hosts = ("--host", "good", "--host", "fresh", "--host", "locked")
    terminal = person("status", "--ssh", ssh_hosts.options, *hosts)
    terminal.wait_for("mpsbar: connecting to fresh")
    terminal.wait_for("continue connecting")
    assert "Apple CHIP" not in terminal.seen
    assert "passphrase" not in terminal.seen
    terminal.type("yes")
    terminal.wait_for("mpsbar: connecting to locked")
    terminal.wait_for("Enter passphrase for key")
    folder = find_socket_folder(terminal.process)
    assert (folder / "0").is_socket()
    assert folder.stat().st_mode & 0o777 == 0o700
    terminal.type("open sesame")
    assert terminal.end() == 0, terminal.seen
    shown = terminal.seen[terminal.seen.rindex("passphrase") :]
    assert shown.count("Apple CHIP") == 3
    assert "open sesame" not in terminal.seen
    assert not folder.exists()
    wait_for(lambda: not has_connections(folder), "no connection left")


def test_top_draws_only_after_the_questions_and_a_refusal_is_a_line(ssh_hosts, person):
    ssh_hosts.add("good", AGAIN)
    ssh_hosts.add("fresh", AGAIN)
    ssh_hosts.make_unknown("fresh")
    hosts = ("--host", "good", "--host", "fresh")
    terminal = person("top", "--ssh", ssh_hosts.options, *hosts)
    terminal.wait_for("continue connecting")
    assert "hosts answer" not in terminal.seen
    terminal.type("no")
    terminal.wait_for("1 of 2 hosts answer")
    terminal.wait_for("no answer")
    terminal.wait_for("Host key verification failed")
    terminal.press("q")
    assert terminal.end() == 0


@pytest.mark.parametrize(
    ("command", "answer"), [("why", "mpsbar knows of no run"), ("free --all", "no ")]
)
def test_other_commands_ask_once_too(ssh_hosts, person, command, answer):
    ssh_hosts.add("locked", ONCE)
    ssh_hosts.lock_key("locked", "open sesame")
    terminal = person(*command.split(), "--ssh", ssh_hosts.options, "--host", "locked")
    terminal.wait_for("Enter passphrase for key")
    terminal.type("open sesame")
    terminal.end()
    assert f"locked: {answer}" in terminal.seen.split("passphrase")[-1].lower()
    assert "no answer" not in terminal.seen


def test_a_report_asks_once_for_both_of_its_questions(ssh_hosts, person, tmp_path):
    ssh_hosts.add("locked", ONCE)
    ssh_hosts.lock_key("locked", "open sesame")
    page = tmp_path / "page.html"
    terminal = person("report", "--ssh", ssh_hosts.options, "--host", "locked", "-o", str(page))
    terminal.wait_for("Enter passphrase for key")
    terminal.type("open sesame")
    assert terminal.end() == 0, terminal.seen
    assert terminal.seen.count("Enter passphrase") == 1
    assert "Apple CHIP" in page.read_text()
    assert "mpsbar knows of no run that ended there" in page.read_text()


def test_without_a_terminal_nothing_is_asked(workers, ssh_hosts):
    ssh_hosts.add("fresh", ONCE)
    ssh_hosts.make_unknown("fresh")
    arguments = ("status", "--json", "--ssh", ssh_hosts.options, "--host", "fresh")
    with run_mpsbar(workers, *arguments) as process:
        out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, err) == (1, "")
    assert json.loads(out)["hosts"]["fresh"]["problem"] == "Host key verification failed."


def test_a_cache_is_freed_from_the_screen_of_all_hosts(workers, ssh_hosts, person):
    """With the real mpsbar there and a real worker; over the connection that was asked for."""
    need_module("mlx")
    worker = workers.start(MLX_WORKER)
    worker.wait_line("ready")
    worker.wait_asleep()  # a Free waits five seconds for a main that does not wait yet
    ssh_hosts.add("locked")
    ssh_hosts.lock_key("locked", "open sesame")
    terminal = person("top", "--ssh", ssh_hosts.options, "--host", "locked")
    terminal.wait_for("Enter passphrase for key")
    terminal.type("open sesame")
    terminal.wait_for("20.0 MB")
    terminal.wait_for(str(worker.pid))
    terminal.press(f"/{worker.pid}\rf")  # others may run torch on this computer too
    terminal.wait_for("freed 16.0")  # a notice may be broken between words
    terminal.press("q")
    assert terminal.end() == 0


def test_a_closed_window_ends_the_screen_and_every_ssh(ssh_hosts, person):
    ssh_hosts.add("locked", AGAIN)
    ssh_hosts.lock_key("locked", "open sesame")
    terminal = person("top", "--ssh", ssh_hosts.options, "--host", "locked")
    terminal.wait_for("Enter passphrase for key")
    folder = find_socket_folder(terminal.process)
    terminal.type("open sesame")
    terminal.wait_for("1 of 1 hosts answer")
    terminal.hang_up()
    assert terminal.process.wait(timeout=TIMEOUT) != 0
    wait_for(lambda: not has_connections(folder), "no connection left")
    assert not folder.exists()


# What ssh runs to reach a host: it takes longer than the screen waits, until a file is there.
SLOW_WAY = """
import os, select, socket, sys, time
while not os.path.exists(sys.argv[2]): time.sleep(0.1)
host = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
while ready := select.select([0, host], [], [])[0]:
    for end in ready:
        if not (data := os.read(0, 65536) if end == 0 else host.recv(65536)):
            sys.exit()
        host.sendall(data) if end == 0 else os.write(1, data)
"""


def reads_an_answer(process):
    """Whether the ssh that may ask, told by its ControlMaster, sleeps."""
    for child in psutil.Process(process.pid).children():
        with contextlib.suppress(psutil.Error):
            if "-oControlMaster=yes" in child.cmdline():
                return child.status() == psutil.STATUS_SLEEPING
    return False


def test_a_host_that_was_too_slow_is_asked_from_the_screen(ssh_hosts, person):
    """The others are not held up by it; the screen makes room for ssh, and comes back."""
    ssh_hosts.add("good", AGAIN)
    ssh_hosts.add("slow", AGAIN)
    ssh_hosts.lock_key("slow", "open sesame")
    way, is_open = ssh_hosts.folder / "way.py", ssh_hosts.folder / "open"
    way.write_text(SLOW_WAY)
    ssh_hosts.own_lines["slow"] += f"  ProxyCommand {sys.executable} {way} %p {is_open}\n"
    ssh_hosts._write_config()
    hosts = ("--host", "good", "--host", "slow")
    terminal = person("top", "--ssh", ssh_hosts.options, *hosts, is_patient=False)
    terminal.wait_for("1 of 2 hosts answer")
    assert "passphrase" not in terminal.seen
    is_open.touch()
    terminal.wait_for("ssh has a question")
    terminal.press("\x1b[Z\x1b[B")  # to the hosts, and down to the second one
    terminal.wait_for("Answer ssh")
    terminal.press("c")
    terminal.wait_for("mpsbar: connecting to slow")
    terminal.wait_for("Enter passphrase for key")
    # A Ctrl-C that comes between ssh's question and its read() is lost in ssh.
    wait_for(lambda: reads_an_answer(terminal.process), "an ssh that waits for the answer")
    terminal.press("\x03")  # ends ssh alone
    terminal.seen = ""
    terminal.wait_for("hosts answer")
    terminal.seen = ""
    terminal.press("c")
    terminal.wait_for("Enter passphrase for key")
    terminal.type("open sesame")
    terminal.wait_for("2 of 2 hosts answer")
    terminal.press("q")
    assert terminal.end() == 0
