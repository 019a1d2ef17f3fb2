"""What `mpsbar doctor` found: the Pythons it looked at, and what is to be said of each. Pure."""

from dataclasses import dataclass

from mpsbar.core.findings import Reason
from mpsbar.core.machine import IconCheck, Machine, Problem, Process
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.torch_settings import judge_settings
from mpsbar.doctor.rules import Device, judge_device


@dataclass(frozen=True, slots=True)
class Checkup:
    machine: Machine
    pythons: tuple[tuple[Device, tuple[Reason, ...]], ...] = ()
    processes: tuple[tuple[Process, tuple[Reason, ...]], ...] = ()  # with settings worth a word
    problems: tuple[Problem, ...] = ()  # what could not be read of the machine
    left_out: tuple[str, ...] = ()  # Pythons that were too many to be looked at
    icon: IconCheck | None = None  # what the menu bar app last saw of its icon
    no_icon: str | None = None  # why this Python would draw none, as a code

    @property
    def worries(self) -> tuple[Reason, ...]:
        judged = [*(r for _, r in self.pythons), *(r for _, r in self.processes)]
        return tuple(reason for reasons in judged for reason in reasons if reason.level != "ok")


def build_checkup(
    snapshot: Snapshot, devices: tuple[Device, ...], left_out: tuple[str, ...] = ()
) -> Checkup:
    machine = snapshot.machine
    return Checkup(
        machine=machine,
        pythons=tuple((device, judge_device(device, machine)) for device in _once(devices)),
        processes=_judge_processes(snapshot),
        problems=snapshot.problems,
        left_out=left_out,
    )


def _once(devices: tuple[Device, ...]) -> tuple[Device, ...]:
    """Each environment once: a shim or a second name leads to one that was looked at already."""
    seen: dict[object, Device] = {}
    for device in devices:
        known = device.prefix is not None
        seen.setdefault((device.prefix, device.version) if known else device.python, device)
    return tuple(seen.values())


def _judge_processes(snapshot: Snapshot) -> tuple[tuple[Process, tuple[Reason, ...]], ...]:
    """What running ones were started with, which need not be what this shell has set."""
    if not (snapshot.machine.os or "").startswith("macOS"):
        return ()
    versions = {worker.pid: worker.frameworks.get("torch") for worker in snapshot.workers}
    judged = (
        (process, judge_settings(process.settings, versions.get(process.pid)))
        for process in snapshot.processes or ()
        if "torch" in process.frameworks
    )
    return tuple((process, reasons) for process, reasons in judged if reasons)
