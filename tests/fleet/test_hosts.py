"""Commands on several hosts at once."""

import contextlib
import threading

import psutil
import pytest
from fleet_kit import STATUS_LINE
from worker_kit import TIMEOUT, read_command, wait_for

from mpsbar.fleet import hosts
from mpsbar.fleet.hosts import ask_hosts
from mpsbar.fleet.ssh import RemoteCommand
from mpsbar.ui.text.hosts import say_silence

pytestmark = pytest.mark.starts_processes


@pytest.mark.timeout(120)  # without its mend it waits for the command, which outlives this
def test_ctrl_c_while_hosts_are_still_being_asked_ends_those_that_were():
    command = ["sleep", "1000"]
    started = []

    class Interrupted(dict):
        def items(self):
            yield "first", command
            started.extend(wait_for(find_started, "the first command"))
            raise KeyboardInterrupt

    def find_started():
        return [child for child in psutil.Process().children() if read_command(child) == command]

    with pytest.raises(KeyboardInterrupt):
        ask_hosts(Interrupted(first=command, second=command), lambda line: line, 1000.0)
    assert started
    assert not any(child.is_running() for child in started)


def test_a_host_that_answers_and_then_hangs(ssh_hosts, tmp_path, monkeypatch):
    """Its ssh lives and says nothing: the rows say since when; they are good again with the next."""
    monkeypatch.setattr(hosts, "_LATE", 0.5)
    go_on = tmp_path / "go_on"
    script = f"echo '{STATUS_LINE}'; while [ ! -e {go_on} ]; do sleep 0.1; done"
    ssh_hosts.add("hangs", f"{script}; while echo '{STATUS_LINE}'; do sleep 0.1; done")
    words = ["status", "--json", "--watch", "0.5"]
    with contextlib.closing(hosts.Hosts(["hangs"], words, ssh_hosts.options, 0.5)) as asked:

        def read():
            return asked.readings[0]

        wait_for(lambda: read().status and read().problem, "silence")
        assert read().problem == "silent for 2 seconds"
        assert say_silence(read()).startswith("no answer since ")
        go_on.touch()
        wait_for(lambda: read().problem is None, "an answer")


def test_a_host_that_is_closed_while_its_ssh_starts_leaves_none(ssh_hosts, monkeypatch):
    """`close` comes before there is an ssh to end."""
    ssh_hosts.add("alpha", "exec sleep 60")
    begins, may_start, started = threading.Event(), threading.Event(), []

    class Slow(RemoteCommand):
        def __init__(self, command):
            begins.set()
            may_start.wait(TIMEOUT)
            super().__init__(command)
            started.append(self._process)

    monkeypatch.setattr(hosts, "RemoteCommand", Slow)
    asked = hosts.Hosts(["alpha"], ["status"], ssh_hosts.options, 2.0)
    assert begins.wait(TIMEOUT)
    asked.close()
    may_start.set()
    asked.wait(TIMEOUT)
    assert [process.poll() is not None for process in started] == [True]
