"""Fixtures shared by all folders, and what makes a test run the same wherever it is started."""

import fcntl
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import appkit
import fork_server
import psutil
import pytest
from appkit.real import RealMac
from hypothesis import HealthCheck, settings
from mac_sockets import use_mac_sockets
from read_timeouts_kit import be_patient
from shared_rewriting import rewrite_share
from signals_kit import restore_signals
from worker_kit import TIMEOUT, Workers

if TYPE_CHECKING:
    from ssh_kit import SshHosts

    from mpsbar.core.machine import Machine

# Hypothesis times what it runs; on two busy cores that says nothing about the code. Its examples are others
# in every run; `make thorough` and `make fuzz` try many.
BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("busy", BUSY, max_examples=40)
settings.register_profile("thorough", BUSY, max_examples=400)
settings.load_profile("busy")

restore_signals()
# Whoever runs the tests may read mpsbar in another language.
os.environ["MPSBAR_LANG"] = "en"
# Whoever runs them may have workers, measurements and settings too. A test that names no folders has these.
FOLDER = Path(tempfile.mkdtemp(prefix="mpsbar-tests-"))
for name in ("RUN", "DATA", "CONFIG"):
    os.environ[f"MPSBAR_{name}_DIR"] = str(FOLDER / name.lower())
be_patient()
# While the tests are read nothing becomes garbage; to look for it takes a tenth of that time.
gc.disable()


def pytest_sessionstart(session: pytest.Session) -> None:
    rewrite_share(session.config)


def pytest_collection_finish() -> None:
    """All tests and what they import stay until the end: no collection need look at them."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    fork_server.end_servers()
    shutil.rmtree(FOLDER, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """How many processes `-n auto` starts: most tests wait, for their workers or for a screen.

    Those of `make quick` compute, and each process reads all of the tests first (four seconds of a core).
    """
    cores = os.cpu_count() or 1
    return cores if config.getoption("markexpr") == "not starts_processes" else 5 * cores // 2


# A test that uses one of these, or whose module imports one of those, starts real processes. Those that
# import torch into the test process (the group "torch") take as long: `make quick` leaves them out too.
STARTING_FIXTURES = {"workers", "read_only", "ssh_hosts", "usable", "built", "browser", "display"}
STARTING_MODULES = {
    "changed_package",
    "subprocess",
    "pty",
    "fleet_kit",
    "fork_server",
    "host_kit",
    "ssh_kit",
    "probe_kit",
    "device_child",
}


# What lives for a whole run: the tests that use it run in one process, one after the other. The same
# holds for fixtures of a module, but not if it costs little. What all processes share (build_once) is
# better used by one as well: the others would only wait for it.
SHARED_FIXTURES = {"shared_device"}
CHEAP_FIXTURES = {"display", "page"}


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups and -m the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the mark starts_processes where it can be seen (other tests carry it), and the groups."""
    if not config.getoption("--thorough"):
        slow = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & SHARED_FIXTURES:
            item.add_marker(pytest.mark.xdist_group(f"shared in {item.path.parent.name}"))
        elif uses_module_fixture(item):
            item.add_marker(pytest.mark.xdist_group(f"of {item.path.stem}"))
        module = vars(getattr(item, "module", None) or type(item))
        imported = {getattr(value, "__module__", None) for value in module.values()}
        imported |= {value.__name__ for value in module.values() if isinstance(value, ModuleType)}
        imports_torch = any(mark.args == ("torch",) for mark in item.iter_markers("xdist_group"))
        if fixtures & STARTING_FIXTURES or imported & STARTING_MODULES or imports_torch:
            item.add_marker("starts_processes")
    items.sort(
        key=lambda item: 0 if item.get_closest_marker("xdist_group") else 1 + runs_last(item)
    )


class NameGroups:
    """pytest-xdist 3.8 adds the group to a test's id where pytest 9.2 no longer reads it: without this
    groups are silently ignored. tests/test_test_suite.py tells when it is not needed any more.
    """

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            named = getattr(item, "_nodeid", item.nodeid)
            if named != item.nodeid:
                item._id = type(item.id).parse(named)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(NameGroups())
    if config.getoption("--thorough"):
        settings.load_profile("thorough")


def uses_module_fixture(item: pytest.Item) -> bool:
    """Whether it uses something that is made once for its file, in the process that runs the test."""
    info = getattr(item, "_fixtureinfo", None)
    found = {name: made[-1] for name, made in info.name2fixturedefs.items()} if info else {}

    def is_shared(name: str) -> bool:
        used = found[name].argnames if name in found else ()
        return name in CHEAP_FIXTURES or any(map(is_shared, used))

    return any(made.scope == "module" and not is_shared(name) for name, made in found.items())


def runs_last(item: pytest.Item) -> bool:
    """The quick ones last: they fill the time in which the last slow one would run alone."""
    return item.get_closest_marker("starts_processes") is None


GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden",
        action="store_true",
        help="write tests/golden anew instead of comparing with it: then read the git diff",
    )
    parser.addoption(
        "--thorough", action="store_true", help="run the tests marked `thorough` too: minutes each"
    )
    parser.addoption(
        "--real-mac",
        action="store_true",
        help="scenes of the menu bar run on the real AppKit (on Linux: by the same driver, on the double)",
    )
    parser.addoption(
        "--mac-sockets",
        action="store_true",
        help="on Linux: macOS's socket errors and kqueue below every test (tests/mac_sockets.py)",
    )


@pytest.fixture(autouse=True)
def sockets_of_this_run(request):
    """With a monkeypatch of its own: another test's must be undone before its fixtures end."""
    with pytest.MonkeyPatch.context() as patch:
        if request.config.getoption("--mac-sockets"):
            use_mac_sockets(patch)
        yield


@pytest.fixture(autouse=True)
def nothing_stays():
    """An agent of this process would be there in all later tests: a thread, a worker, thresholds of the collector.

    A monitor that was closed ticks to the end of its tick, which may fail, or log: in its own test.
    """
    yield
    lifecycle = sys.modules.get("mpsbar.agent.lifecycle")
    assert lifecycle is None or not lifecycle.is_attached()
    for thread in threading.enumerate():
        if thread.name == "mpsbar-tick":
            thread.join(TIMEOUT)
            assert not thread.is_alive()


@pytest.fixture(params=["linux", "macos"])
def each_systems_sockets(request, monkeypatch):
    if request.param == "macos":
        use_mac_sockets(monkeypatch)


@pytest.fixture
def check_golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """A way to compare what a person reads with a file of tests/golden: check_golden(name, text)."""

    def check(name: str, text: str) -> None:
        file = GOLDEN / name
        if request.config.getoption("--golden"):
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return check


@pytest.fixture
def calm_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a real monitor with its alerts: this computer, not short of memory, with the processes of this test.

    Others may test here too, and memory may run out meanwhile: a test that waits for a notice would get those.
    """
    if sys.platform != "linux":
        return
    from mpsbar.system.linux import LinuxComputer

    read_machine, list_processes = LinuxComputer.read_machine, LinuxComputer.list_processes

    def read_calm(computer: LinuxComputer) -> "Machine":
        machine = read_machine(computer)
        available = machine.memory_total and machine.memory_total // 2
        return replace(
            machine, pressure="normal", swap_used=0, memory_available=available, on_battery=None
        )

    def list_ours(computer: LinuxComputer) -> dict[int, Hashable] | None:
        listed = list_processes(computer)  # None: the same as before
        ours = {child.pid for child in psutil.Process().children(recursive=True)}
        return listed and {pid: start for pid, start in listed.items() if pid in ours}

    monkeypatch.setattr(LinuxComputer, "read_machine", read_calm)
    monkeypatch.setattr(LinuxComputer, "list_processes", list_ours)


BuildOnce = Callable[[str, Callable[[Path], str]], tuple[Path, str]]


@pytest.fixture(scope="session")
def build_once(tmp_path_factory: pytest.TempPathFactory) -> BuildOnce:
    """A way to make a folder once for all processes of this test run: build_once(name, make).

    The first that asks runs `make(folder)`, which returns its log; all get the folder and that log.
    """
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # each process of pytest-xdist has a folder of its own in it

    def build(name: str, make: Callable[[Path], str]) -> tuple[Path, str]:
        folder, log = base / f"built-{name}", base / f"built-{name}.log"
        with (base / f"built-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not log.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                log.write_text(make(folder))
        return folder, log.read_text()

    return build


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Real workers in a run directory of their own; the monitor under test looks there too."""
    kit = Workers()
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(kit.run_dir))
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(kit.folder / "data"))
    yield kit
    kit.end()
    shutil.rmtree(kit.folder, ignore_errors=True)


@pytest.fixture
def ssh_hosts(tmp_path: Path, workers: Workers) -> Iterator["SshHosts"]:
    """Real ssh servers on loopback; skipped where sshd is not installed."""
    from ssh_kit import SshHosts

    hosts = SshHosts(tmp_path, workers)
    yield hosts
    hosts.end()


# They import AppKit, and so belong to one session of its double.
BOUND = ("mpsbar.ui.menubar", "mpsbar.desktop")


@pytest.fixture
def private(tmp_path, monkeypatch):
    """Every file the app makes is this test's own."""
    for name in ("DATA", "CONFIG", "LOG"):
        monkeypatch.setenv(f"MPSBAR_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("BAR", "INTERVAL", "ALERTS", "ALERT_CAUSES", "COOL_DOWN"):
        monkeypatch.delenv(f"MPSBAR_{name}", raising=False)
    return tmp_path


@pytest.fixture
def read_only():
    """A way to make a folder unchangeable for a while, for root too: with read_only(folder): …"""

    @contextmanager
    def mount(folder: Path) -> Iterator[None]:
        steps = (["--bind", str(folder), str(folder)], ["-o", "remount,ro,bind", str(folder)])
        for number, step in enumerate(steps):
            if subprocess.run(["mount", *step], capture_output=True, check=False).returncode:
                if number:
                    subprocess.run(["umount", "-l", str(folder)], check=True)
                pytest.skip("nothing can be mounted here (root only)")
        try:
            yield
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)

    return mount


@pytest.fixture
def mac(private, request):
    if why := appkit.why_no_rumps():
        pytest.skip(why)
    is_real = request.config.getoption("--real-mac")
    if is_real and sys.platform == "darwin":
        yield RealMac()
        return
    with appkit.installed(home=private / "home", bundle="io.github.mpsbar", forget=BOUND) as made:
        yield RealMac() if is_real else made
