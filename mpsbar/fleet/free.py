"""Free on another host: `mpsbar free` there, with that host's own checks."""

import threading

from mpsbar.core.actions import Freed
from mpsbar.fleet.hosts import explain_end
from mpsbar.fleet.parse_status import NotAStatus, parse_freed
from mpsbar.fleet.ssh import RemoteCommand, TooMuch, build_command


def free_on_host(host: str, words: list[str], options: str, seconds: float) -> list[Freed] | str:
    """The outcomes, or why there are none."""
    running = RemoteCommand(build_command(host, words, options))
    is_late = threading.Event()

    def give_up() -> None:
        is_late.set()
        running.end()

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        for line in running.read_lines():
            if line.startswith(b"{"):
                return parse_freed(line)
        return f"nothing within {seconds:g} seconds" if is_late.is_set() else explain_end(running)
    except TooMuch:
        return "its answer is too long"
    except NotAStatus as problem:
        return str(problem)
    finally:
        timer.cancel()
        running.end()
