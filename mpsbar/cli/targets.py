"""Finds the processes that a command names by PID or name, and prints the outcome for one."""

import argparse
from typing import TYPE_CHECKING

from mpsbar.cli.arguments import parse_pid
from mpsbar.cli.output import print_stderr
from mpsbar.core.errors import UserError
from mpsbar.core.naming import is_called
from mpsbar.language import _

if TYPE_CHECKING:
    from mpsbar.core.actions import Freed, Limited
    from mpsbar.core.snapshot import Snapshot, Worker


def parse_target(text: str) -> int | str:
    """Returns a PID, or else the name of a process."""
    if text.lstrip("+-").isdigit():
        return parse_pid(text)
    if not text.strip():
        raise argparse.ArgumentTypeError(_("not a process ID or name: ''"))
    return text


def find_pids(targets: "list[int | str]", snapshot: "Snapshot") -> list[int]:
    """Returns the given PIDs and those of all connected processes with a given name, each once."""
    pids: dict[int, None] = {}
    for target in targets:
        found = [target] if isinstance(target, int) else _find_named(target, snapshot)
        pids.update(dict.fromkeys(found))
    return list(pids)


def _find_named(name: str, snapshot: "Snapshot") -> list[int]:
    from mpsbar.ui.text import wording

    pids = [
        worker.pid for worker in snapshot.workers if is_called(name, *_names_of(worker, snapshot))
    ]
    if not pids:
        names = sorted({snapshot.names.get(w.pid, w.name) for w in snapshot.workers})
        raise UserError(wording.no_such_name(name, names))
    return pids


def _names_of(worker: "Worker", snapshot: "Snapshot") -> tuple[str, ...]:
    """Returns its name as shown, maybe with a number, and its name without."""
    return snapshot.names.get(worker.pid, worker.name), worker.name


def print_outcome(outcome: "Freed | Limited", sentence: str, snapshot: "Snapshot") -> None:
    """Prints the outcome for one process; to stderr if no such process is connected."""
    if outcome.state == "gone":
        print_stderr(f"{outcome.pid}: {_say_why_not_connected(outcome.pid, snapshot)}")
        return
    name = "" if outcome.name == str(outcome.pid) else f" {outcome.name}"
    print(f"{outcome.pid}{name}: {sentence}")


def _say_why_not_connected(pid: int, snapshot: "Snapshot") -> str:
    """Says why a process can't be reached (none, another user's, not connected), and what helps."""
    from mpsbar.system.ownership import find_owner
    from mpsbar.ui.text import wording

    process = next((p for p in snapshot.processes or () if p.pid == pid), None)
    if process is not None:
        return wording.unconnected(process)
    owner = find_owner(pid)
    if owner is None:
        return wording.no_such_process()
    return (
        wording.without_framework()
        if owner.is_current_user
        else wording.of_another_user(owner.name)
    )
