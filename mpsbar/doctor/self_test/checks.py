"""Checks mpsbar itself: what every system can check, what a Mac can, what a person must."""

import os
import sys
import time
from collections.abc import Callable, Iterator

import mpsbar
from mpsbar import __version__
from mpsbar.doctor.self_test import mac_checks
from mpsbar.doctor.self_test.text import FOR_PEOPLE, SelfCheck
from mpsbar.doctor.self_test.worker_trial import describe, try_worker
from mpsbar.language import _
from mpsbar.system import paths, this_computer
from mpsbar.system.settings_file import read_settings
from mpsbar.ui.text.wording import duration, size
from mpsbar.workers.poll import WorkerPoll

RESOURCES = ("icon.png", "icon@2x.png", "icon-warning.png", "icon-critical.png", "mpsbar.icns")
SLOW_SECONDS = 3.0  # for Metal's first device
_ANSWER_SECONDS = 10.0  # of our own agent, on a busy machine


def check_all(python: str | None = None) -> list[SelfCheck]:
    """Make every check that can be made here, and list what only a person can see.

    `python` has torch: a small worker is tried in it.
    """
    return [*_check(python), *(SelfCheck(key, "manual") for key in FOR_PEOPLE)]


def _check(python: str | None) -> Iterator[SelfCheck]:
    common: dict[str, Callable[[], str | None]] = {
        "resources": _check_resources,
        "folders": _check_folders,
        "settings": _check_settings,
        "agent": _check_agent,
        "machine": _check_machine,
        "process": _check_process,
    }
    for key, check in common.items():
        yield try_check(key, check)
    if python is None:
        yield SelfCheck("worker", "skip", "no_torch")
    else:
        yield try_check("worker", lambda: describe(try_worker(python)))
    for key, check in mac_checks.CHECKS.items():
        if sys.platform != "darwin":
            yield SelfCheck(key, "skip", "not_a_mac")
        elif key in mac_checks.WITH_GPU and this_computer().read_machine().is_virtual:
            yield SelfCheck(key, "skip", "virtual")
        elif key in mac_checks.IN_APP and not paths.is_in_app():
            yield SelfCheck(key, "skip", "not_in_app")
        else:
            yield try_check(key, check)


def try_check(key: str, check: Callable[[], str | None]) -> SelfCheck:
    """A check returns what it found, None if it cannot be made yet; what it raises is a fault."""
    try:
        seen = check()
    except Exception as error:  # noqa: BLE001 - any fault is a result
        return SelfCheck(key, "fail", f"{type(error).__name__}: {error}"[:300])
    return SelfCheck(key, "skip", "not_yet") if seen is None else SelfCheck(key, "pass", seen)


def _check_resources() -> str:
    files = [paths.resource(name) for name in RESOURCES]  # raises if one is missing
    return str(files[0].parent)


def _check_folders() -> str:
    """Checks that the nearest existing folders are writable; creates none."""
    files = (paths.enabled_file(), paths.settings_file(), paths.log_file())
    for folder in {file.parent for file in files}:
        there = next(place for place in (folder, *folder.parents) if place.exists())
        if not os.access(there, os.W_OK):
            raise PermissionError(_("couldn't write to {folder}").format(folder=there))
    return str(paths.data_folder())


def _check_settings() -> str:
    loaded = read_settings({})
    if loaded.complaints:
        raise ValueError("; ".join(loaded.complaints))
    return str(paths.settings_file())


def _check_agent() -> str:
    """Starts an agent in this process and asks it: socket, peer credentials, answer."""
    if os.environ.get("MPSBAR_DISABLE", "") not in ("", "0"):
        raise RuntimeError(_("MPSBAR_DISABLE is set"))
    os.environ["MPSBAR_LAST_WORDS"] = "0"  # this check is no run of the user's, for `mpsbar why`
    if not mpsbar.attach():
        raise RuntimeError(_("the agent did not start"))
    workers, end = WorkerPoll(), time.monotonic() + _ANSWER_SECONDS
    try:
        while True:
            # Once more after the time is over: on a busy machine the first may come that late.
            is_last = time.monotonic() > end
            mine = [worker for worker in workers.poll() if worker.pid == os.getpid()]
            if any(worker.state == "live" for worker in mine):
                return _("agent {version}").format(version=__version__)
            if is_last:
                break
            time.sleep(0.1)
    finally:
        workers.close()
    raise TimeoutError(_("no answer within {time}").format(time=duration(_ANSWER_SECONDS)))


def _check_machine() -> str:
    computer = this_computer()
    computer.wait_for_slow(SLOW_SECONDS)
    machine = computer.read_machine()
    wanted = {
        "chip": machine.chip,
        "memory": machine.memory_total,
        "available": machine.memory_available,
    }
    if sys.platform == "darwin":
        wanted |= {"pressure": machine.pressure, "swap": machine.swap_used}
    if sys.platform == "darwin" and not machine.is_virtual:
        gpu = machine.gpu
        wanted |= {"gpu": gpu.name}
        wanted |= {"utilisation": gpu.utilization, "budget": gpu.memory_budget}
        wanted |= {"gpu memory": gpu.memory_in_use}
    problems = [f"{problem.reader}: {problem.text}" for problem in computer.problems]
    unknown = [name for name, value in wanted.items() if value is None]
    if unknown or (problems and sys.platform == "darwin" and not machine.is_virtual):
        raise ValueError(
            _("not read: {names}; {problems}").format(
                names=", ".join(unknown) or "-", problems="; ".join(problems)
            )
        )
    words = f"{machine.chip}, {machine.os}"
    if machine.is_virtual:
        return _("{machine}, a virtual machine: its GPU was not checked").format(machine=words)
    return words


def _check_process() -> str:
    """Checks that this process can be read like any other."""
    computer, pid = this_computer(), os.getpid()
    details, footprint = computer.read_details(pid), computer.read_footprint(pid)
    if not details.command or not footprint.now:
        raise ValueError(
            _("command {command}, footprint {footprint}").format(
                command=details.command, footprint=footprint.now
            )
        )
    if loaded := computer.read_libraries(pid):
        raise ValueError(_("the monitor itself has loaded {names}").format(names=", ".join(loaded)))
    return size(footprint.now)
