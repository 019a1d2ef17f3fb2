"""One measurement of the menu bar app, in a process of its own: refresh, start or idle."""

import json
import statistics
import sys
import time

BEGAN = time.perf_counter()
WORKERS = 20
ROUNDS = 200
IDLE_SECONDS = 30


def refresh() -> list[str]:
    """The open menu, which is drawn at every look; a closed one draws the bar alone."""
    from samples import GB, make_snapshot, make_training
    from ui.fake_monitor import FakeMonitor

    def look(step: int, changes: int) -> object:
        """New objects each time, as on a Mac, where each look measures the GPU anew."""
        held = 6 * GB + (step % 40 << 28) * changes
        workers = [make_training(100 + n, f"w{n}.py", held) for n in range(WORKERS)]
        return make_snapshot(*workers, time=1000.0 + step)

    figures = []

    def person(user):
        for name, is_open, changes in (
            ("nothing changed, open", True, 0),
            ("all changed, open", True, 1),
            ("all changed, closed", False, 1),
        ):
            spent = []
            for step in range(ROUNDS):
                user.monitor.latest = look(step, changes)
                if is_open and not user.app._is_open:
                    opened = user.mac.menu()
                    opened.__enter__()
                start = time.thread_time()
                user.app._refresh()
                spent.append(time.thread_time() - start)
            if is_open:
                opened.__exit__(None, None, None)
            figures.append(_figure(f"{WORKERS} workers, {name}", spent))

    _play(FakeMonitor(look(0, 0)), person)
    return figures


def start() -> list[str]:
    """From the first line of Python to a menu that shows this machine's first look."""
    import psutil

    figures = []

    def person(user):
        user.mac.wait_for(lambda: user.monitor.latest.machine.memory_total)
        user.mac.wait(0)
        with user.mac.menu() as menu:
            assert len(menu.lines()) > 5
            figures.append(f"start to first complete menu: {time.perf_counter() - BEGAN:.2f} s")
        resident = psutil.Process().memory_info().rss
        without = (resident - _double_alone()) / 2**20
        figures.append(
            f"memory: {resident / 2**20:.0f} MB resident, {without:.0f} MB without the double"
        )

    _play(_monitor(), person)
    return figures


def idle() -> list[str]:
    """The menu closed, a look every 2 s, this machine's own processes."""
    from appkit.loop import main_loop

    figures = []

    def person(user):
        for _ in range(10):
            main_loop()._wait_for_call(1.0)
        start, began = time.process_time(), time.perf_counter()
        while time.perf_counter() - began < IDLE_SECONDS:
            main_loop()._wait_for_call(1.0)
            user.mac.wait(1.0)
        spent = time.process_time() - start
        share = spent / (time.perf_counter() - began)
        found = len(user.monitor.latest.processes or ())
        figures.append(f"idle, menu closed, 2 s: {share:.2%} of a core ({found} torch processes)")

    _play(_monitor(), person)
    return figures


def _monitor():
    from mpsbar.monitor import Monitor

    return Monitor()


def _play(monitor, person) -> None:
    import appkit
    from ui.menubar_kit import MenuBarUser

    with appkit.installed(bundle="io.github.mpsbar", forget=("mpsbar.ui", "mpsbar.desktop")) as mac:
        user = MenuBarUser(mac, monitor)
        user.run(lambda: person(user))


def _double_alone() -> int:
    """What the double and its index of Apple's API take in a process that does nothing else."""
    import subprocess

    code = (
        "import psutil\nbase = psutil.Process().memory_info().rss\n"
        "import appkit\nwith appkit.installed() as mac:\n"
        "    from appkit.index import known_names\n    known_names()\n"
        "    print(psutil.Process().memory_info().rss - base)"
    )
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)


def _figure(name: str, spent: list[float]) -> str:
    median, worst = statistics.median(spent) * 1e3, sorted(spent)[int(len(spent) * 0.9)] * 1e3
    return f"{name}: {median:.2f} ms of CPU, nine in ten under {worst:.2f}"


if __name__ == "__main__":
    print(json.dumps({"refresh": refresh, "start": start, "idle": idle}[sys.argv[1]]()))
