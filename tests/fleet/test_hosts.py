"""Commands on several hosts at once."""

import psutil
import pytest
from worker_kit import wait_for

from mpsbar.fleet.hosts import ask_hosts

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
        return [child for child in psutil.Process().children() if child.cmdline() == command]

    with pytest.raises(KeyboardInterrupt):
        ask_hosts(Interrupted(first=command, second=command), lambda line: line, 1000.0)
    assert started
    assert not any(child.is_running() for child in started)
