"""mpsbar demo: shows the front end with small real workers, or with a recorded Mac."""

import argparse
import importlib
import importlib.util
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mpsbar.agent.frameworks import FRAMEWORKS, join_labels
from mpsbar.cli.output import HOME_AND_CLEAR, print_stderr
from mpsbar.cli.top import run_terminal, why_no_terminal
from mpsbar.core.errors import UserError
from mpsbar.language import _, ngettext

if TYPE_CHECKING:
    import subprocess

    from mpsbar.core.actions import Freed
    from mpsbar.core.snapshot import Snapshot, Worker
    from mpsbar.monitor import Monitor
    from mpsbar.ui.rows import Menu

# Importing torch on a busy machine with a cold disk cache has taken this long.
START_SECONDS = 120.0
_HINT = _("""That was mpsbar top with demo workers. To use it with yours:
  mpsbar run python train.py     start one connected
  mpsbar enable                  connect everything this environment runs from now on
  mpsbar top                     watch them; ? lists the keys
  mpsbar demo --recorded         a recorded Mac""")
_SCRIPTS = Path(__file__).parent / "demo_workers"
_NOTEBOOK = "notebook_worker.py"


DESCRIPTION = _(
    "Starts small real workers. In a terminal it shows them live, as mpsbar top does; otherwise it "
    "prints the menu as text, frees a cache and prints the menu again."
)
EXAMPLES = (
    "mpsbar demo",
    "mpsbar demo --recorded m1-8gb",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--recorded",
        metavar="NAME",
        nargs="?",
        const="m1max-64gb",
        help=_("show a recorded Mac with invented workers (default: m1max-64gb)"),
    )


def run(options: argparse.Namespace) -> int:
    if options.recorded is not None:
        return _show_recorded(options.recorded)
    plan = plan_workers()
    if not plan:
        raise UserError(
            _(
                "the demo needs {frameworks} here: pip install '.[torch]' in a "
                "checkout of mpsbar, or try a recorded Mac: mpsbar demo --recorded"
            ).format(frameworks=join_labels(_("or")))
        )
    from mpsbar.monitor import Monitor

    text = ngettext(
        "Starting {n} small worker: {names} …", "Starting {n} small workers: {names} …", len(plan)
    )
    print(text.format(n=len(plan), names=", ".join(plan)), flush=True)
    with closing(Monitor(may_free=True)) as monitor, started(plan) as processes:
        if why_no_terminal() is None:
            code = run_terminal(monitor, None)
            print(_HINT)
            return code
        return _show(monitor, processes)


def _show_recorded(name: str) -> int:
    from mpsbar.monitor import Monitor
    from mpsbar.system.replay import RecordedComputer, read_recording
    from mpsbar.ui.menu import build_menu

    recording = read_recording(name)
    invented = "; ".join(recording.get("invented", []))
    print(
        _("{title}. Made up for this recording: {invented}.").format(
            title=recording.get("title"), invented=invented
        )
    )
    monitor = Monitor(RecordedComputer(recording))
    if why_no_terminal() is None:
        return run_terminal(monitor, None)
    with closing(monitor):
        print(f"\n{build_menu(monitor.read_once())}\n", flush=True)
        if sys.stdout.isatty():
            _wait_for_ctrl_c(monitor)
    return 0


def plan_workers() -> dict[str, dict[str, str]]:
    """Returns the scripts that can run here, each with the variables it needs."""
    plan: dict[str, dict[str, str]] = {}
    for framework in FRAMEWORKS:
        script = f"{framework.name}_worker.py"
        package = framework.module.partition(".")[0]
        if (_SCRIPTS / script).exists() and importlib.util.find_spec(package):
            plan[script] = {}
    if "torch_worker.py" in plan:
        software = {"SOFTMPS": "1"} if _has_software_mps() else {}
        plan |= {"software_mps_worker.py": software} if software else {}
        plan[_NOTEBOOK] = software
    return plan


def _has_software_mps() -> bool:
    """Returns whether the tests' MPS in software is here and works with this torch."""
    found = importlib.util.find_spec("softmps")
    return found is not None and not importlib.import_module("softmps").why_not()


@contextmanager
def started(plan: dict[str, dict[str, str]]) -> "Iterator[list[subprocess.Popen[bytes]]]":
    processes: list[subprocess.Popen[bytes]] = []
    is_started = threading.Event()
    hung_up = _install_exit_handlers(processes, is_started)
    try:
        for script, extra in plan.items():
            processes.append(_start(script, extra))
        is_started.set()
        if hung_up:
            sys.exit(128 + hung_up[0])
        yield processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def _start(script: str, extra: dict[str, str]) -> "subprocess.Popen[bytes]":
    import subprocess

    return subprocess.Popen(
        [sys.executable, "-B", str(_SCRIPTS / script)],
        env=os.environ | extra,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the demo; it ends them itself
    )


def _install_exit_handlers(
    processes: "list[subprocess.Popen[bytes]]", is_started: threading.Event
) -> list[int]:
    """Makes SIGTERM and SIGHUP end the demo at once: drawing on a closed terminal may block.

    Returns the list of signals that arrive while workers start, when `processes` may still be
    incomplete.
    """
    early: list[int] = []

    def end(number: int, _frame: object) -> None:
        if not is_started.is_set():
            early.append(number)
            return
        for process in processes:
            process.terminate()
        os._exit(128 + number)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup
                signal.signal(number, end)
    return early


def _show(monitor: "Monitor", processes: "list[subprocess.Popen[bytes]]") -> int:
    from mpsbar.ui.menu import build_menu

    snapshot = _wait_connected(monitor, processes)
    ours = {process.pid for process in processes}
    mine = [worker for worker in snapshot.workers if worker.pid in ours]
    if not mine:
        print_stderr(_("mpsbar: couldn't reach any of the workers"))
        return 1
    menu = build_menu(snapshot)
    print(f"\n{menu}\n")
    # The idle notebook: the next steps of a training run would fill its cache again.
    target = max(mine, key=lambda worker: (worker.name == _NOTEBOOK, worker.cached or 0))
    outcome = _free_like_a_click(monitor, menu, target)
    print(f"\n{build_menu(monitor.tick())}\n", flush=True)
    if sys.stdout.isatty():
        _wait_for_ctrl_c(monitor)
    return 0 if outcome.state == "done" else 1


def _wait_connected(monitor: "Monitor", processes: "list[subprocess.Popen[bytes]]") -> "Snapshot":
    """Waits until all running workers have attached and their allocators were read once."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        snapshot = monitor.tick()
        connected = {worker.pid for worker in snapshot.workers if worker.backends}
        missing = [p.pid for p in processes if p.poll() is None and p.pid not in connected]
        if not missing or time.monotonic() > deadline:
            return snapshot
        time.sleep(0.2)


def _free_like_a_click(monitor: "Monitor", menu: "Menu", worker: "Worker") -> "Freed":
    """Performs the row's own action through the monitor, as a click in the menu does."""
    from mpsbar.core.actions import Free
    from mpsbar.system.waiting import wait_for_result
    from mpsbar.ui.text import outcomes

    row = next(row for row in menu.rows if row.key == f"worker-{worker.pid}")
    (free,) = row.children
    text = _("{button} on {name} (PID {pid}) …")
    print(text.format(button=free.text, name=worker.name, pid=worker.pid), flush=True)
    (action,) = free.actions
    assert isinstance(action, Free)
    outcome = wait_for_result(monitor.perform(action))
    print(outcomes.say_freed(outcome))
    return outcome


def _wait_for_ctrl_c(monitor: "Monitor") -> None:
    print(_("Press Ctrl-C to stop."), flush=True)
    with monitor.watched():
        monitor.start(_draw)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            print()


def _draw(snapshot: "Snapshot") -> None:
    from mpsbar.ui.menu import build_menu

    live = _("Press Ctrl-C to stop.")
    sys.stdout.write(f"{HOME_AND_CLEAR}{build_menu(snapshot)}\n\n{live}\n")
    sys.stdout.flush()
