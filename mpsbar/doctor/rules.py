"""Judges one Python's torch on this machine, and puts the doctor's findings together. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from mpsbar.agent.mps_support import dtype_macos, has_dtype, lowest_macos
from mpsbar.core import torch_facts as versions
from mpsbar.core.findings import Level, Reason, Value
from mpsbar.core.machine import DeliveryCheck, IconCheck, Machine, Problem, Process
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.torch_facts import judge_settings

# How the inspection ended: a crash or a hang is an answer. Unsafe: it was not run, because another
# user can change its files.
InspectionEnd = Literal[
    "ok", "no_torch", "broken_torch", "crashed", "exited", "hung", "no_python", "not_python",
    "unsafe", "stopped",
]  # fmt: skip
# The answers of the child process, in this order; `Device.stage` is the first that is missing.
STAGES = ("python", "torch", "import", "built", "available", "chosen", "computed", "capability")
COMPUTED = 8.0  # ones(2, 2) @ ones(2, 2), summed


@dataclass(frozen=True, slots=True)
class Device:
    """What torch can do in one Python; None is not known."""

    python: str  # the path that was run
    ended: InspectionEnd
    stage: str | None = None
    signal: str | None = None  # signal of the crash, such as SIGSEGV
    error: str | None = None  # error of the failed stage, or the last line of stderr
    version: str | None = None  # version of Python
    implementation: str | None = None
    architecture: str | None = None  # arm64 or x86_64: of the Python, not of the chip
    system: str | None = None  # sys.platform
    os_version: tuple[int, ...] | None = None  # as this Python reads it: an old one reads 10.16
    prefix: str | None = None
    translated: bool | None = None  # whether Rosetta translates it
    settings: dict[str, str] = field(default_factory=dict)  # PYTORCH_* during the inspection
    torch: str | None = None
    torch_file: str | None = None
    torch_preloaded: bool | None = None  # whether a startup file imports torch before any script
    cuda: str | None = None  # version of CUDA that torch was built for
    hip: str | None = None
    mps_built: bool | None = None
    mps_available: bool | None = None
    cuda_available: bool | None = None
    mps_error: str | None = None  # the error that is_available() raised
    cuda_error: str | None = None
    chosen: str | None = None  # device chosen in the order cuda, mps, cpu
    computed: float | None = None  # on the chosen device; COMPUTED is right
    compute_error: str | None = None
    dtypes: tuple[str, ...] | None = None  # dtypes that torch itself lists


def judge_device(device: Device, machine: Machine) -> tuple[Reason, ...]:
    """Returns all findings, the worst first; what is only worth knowing has the level "ok"."""
    reasons = [*_judge_end(device)]
    if device.ended in ("ok", "crashed", "exited", "hung"):
        reasons += _judge_choice(device)
        reasons += filter(None, [why_no_mps(device, machine)])
    if _may_use_mps(device):
        reasons += judge_settings(device.settings, device.torch)
        reasons += _judge_versions(device, machine)
    order: tuple[Level, ...] = ("critical", "warning", "ok")
    return tuple(sorted(reasons, key=lambda reason: order.index(reason.level)))


def why_no_mps(device: Device, machine: Machine) -> Reason | None:
    """Returns why there is no MPS; None if it is available, or nothing is known of it."""
    if device.mps_available or device.mps_built is None:
        return None
    if device.system != "darwin" and not device.mps_built:
        return Reason("mps_not_on_this_system", "ok")
    if device.architecture == "x86_64" and device.system == "darwin":
        is_apple = device.translated or versions.chip_generation(machine.chip) is not None
        code = "mps_rosetta" if is_apple else "mps_intel"
        return Reason(code, "warning", {"last": versions.LAST_FOR_INTEL})
    if not device.mps_built:
        return Reason("mps_not_built", "warning", {"torch": device.torch})
    if device.mps_error is not None:
        return Reason("mps_check_failed", "critical", {"error": device.mps_error})
    return None if device.mps_available is None else _why_unavailable(device, machine)


def _may_use_mps(device: Device) -> bool:
    """Returns True also for a torch that crashed first on a Mac: a setting may be the cause."""
    if device.mps_built is not None:
        return device.mps_built
    return device.system == "darwin" and device.torch_file is not None


def _why_unavailable(device: Device, machine: Machine) -> Reason:
    """Returns why MPS is not available though built in: torch does not say, or wrongly."""
    too_old = _macos_too_old(device, machine)
    if too_old is not None:
        return Reason("mps_macos_too_old", "warning", too_old)
    if machine.is_virtual:
        return Reason("mps_virtual", "warning")
    if machine.os_version is not None and machine.gpu.name is None:
        return Reason("mps_no_gpu", "warning")
    return Reason("mps_unavailable", "warning", {"gpu": machine.gpu.name})


def _macos_too_old(device: Device, machine: Machine) -> dict[str, Value] | None:
    release, macos = versions.parse_release(device.torch), _macos(device, machine)
    lowest = lowest_macos(release) if release else None
    if lowest is None or macos is None or macos >= lowest:
        return None
    needed = str(lowest[0]) if not lowest[1] else f"{lowest[0]}.{lowest[1]}"
    return {"torch": device.torch, "needed": needed, "have": ".".join(map(str, macos))}


def _macos(device: Device, machine: Machine) -> tuple[int, ...] | None:
    """Returns the version of macOS; a Python built long ago reads 10.16 on any newer one."""
    if device.system != "darwin":
        return None
    version = device.os_version
    return machine.os_version or (version if version is not None and version >= (11,) else None)


def _judge_end(device: Device) -> Iterator[Reason]:
    where: dict[str, Value] = {"stage": device.stage, "error": device.error}
    if device.ended == "no_torch":
        yield Reason("no_torch", "ok")
    elif device.ended in ("no_python", "not_python", "unsafe"):
        yield Reason(device.ended, "warning", {"error": device.error})
    elif device.ended == "broken_torch":
        yield Reason("broken_torch", "critical", {"error": device.error})
    elif device.ended in ("crashed", "exited", "hung"):
        yield Reason(device.ended, "critical", {**where, "signal": device.signal})


def _judge_choice(device: Device) -> Iterator[Reason]:
    chosen: dict[str, Value] = {"device": device.chosen}
    if device.cuda_error is not None:
        yield Reason("cuda_check_failed", "critical", {"error": device.cuda_error})
    if device.compute_error is not None:
        yield Reason("compute_failed", "critical", {**chosen, "error": device.compute_error})
    elif device.computed is not None and device.computed != COMPUTED:
        yield Reason("compute_wrong", "critical", {**chosen, "result": str(device.computed)})
    elif device.computed is not None:
        yield Reason("device_works", "ok", chosen)
    if device.torch_preloaded:
        yield Reason("torch_preloaded", "warning")


def _judge_versions(device: Device, machine: Machine) -> Iterator[Reason]:
    """Compare the release of torch with this chip and this macOS."""
    release = versions.parse_release(device.torch)
    if release is None:
        return
    torch: dict[str, Value] = {"torch": device.torch}
    too_old = _macos_too_old(device, machine)
    if device.mps_available and too_old is not None:
        yield Reason("macos_below_stated", "warning", too_old)
    if release < versions.RECOMMENDED:
        yield Reason("torch_too_old", "warning", torch)
    first, last = versions.LONG_MATMUL
    is_affected = versions.chip_generation(machine.chip) in (1, 2) and not machine.is_virtual
    if first <= release <= last and is_affected:
        yield Reason("long_matmul_wrong", "warning", {**torch, "chip": machine.chip})
    yield from _judge_bfloat16(release, _macos(device, machine))
    newest = versions.newest_for(
        _macos(device, machine), versions.parse_release(device.version), device.architecture
    )
    if release < versions.CURRENT and newest is not None:
        yield Reason("newer_torch", "ok", {**torch, "newest": newest})


def _judge_bfloat16(release: versions.Release, macos: tuple[int, ...] | None) -> Iterator[Reason]:
    needed = dtype_macos("bfloat16", release)
    if not has_dtype("bfloat16", release):
        yield Reason("bfloat16_needs_torch", "ok")
    elif needed is not None and macos is not None and macos < needed:
        yield Reason("bfloat16_needs_macos", "ok")


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """The findings of `mpsbar doctor`."""

    machine: Machine
    pythons: tuple[tuple[Device, tuple[Reason, ...]], ...] = ()
    processes: tuple[tuple[Process, tuple[Reason, ...]], ...] = ()  # with notable settings
    problems: tuple[Problem, ...] = ()  # what could not be read of the machine
    left_out: tuple[str, ...] = ()  # Pythons that were not inspected: there were too many
    icon: IconCheck | None = None  # what the menu bar app last read of its icon
    alerts: DeliveryCheck | None = None  # what became of the menu bar app's last alert
    no_icon: str | None = None  # the code of why this Python could not draw one

    @property
    def torch_problems(self) -> tuple[Reason, ...]:
        judged = [*(r for _, r in self.pythons), *(r for _, r in self.processes)]
        return tuple(reason for reasons in judged for reason in reasons if reason.level != "ok")


def build_doctor_report(
    snapshot: Snapshot, devices: tuple[Device, ...], left_out: tuple[str, ...] = ()
) -> DoctorReport:
    machine = snapshot.machine
    return DoctorReport(
        machine=machine,
        pythons=tuple((device, judge_device(device, machine)) for device in _unique(devices)),
        processes=_judge_processes(snapshot),
        problems=snapshot.problems,
        left_out=left_out,
    )


def _unique(devices: tuple[Device, ...]) -> tuple[Device, ...]:
    """Keeps each environment once: a shim and a second name lead to the same one."""
    unique: dict[object, Device] = {}
    for device in devices:
        is_known = device.prefix is not None
        unique.setdefault((device.prefix, device.version) if is_known else device.python, device)
    return tuple(unique.values())


def _judge_processes(snapshot: Snapshot) -> tuple[tuple[Process, tuple[Reason, ...]], ...]:
    """Judge the settings of running processes, which may differ from those of this shell."""
    if not (snapshot.machine.os or "").startswith("macOS"):
        return ()
    versions = {worker.pid: worker.frameworks.get("torch") for worker in snapshot.workers}
    judged = (
        (process, judge_settings(process.settings, versions.get(process.pid)))
        for process in snapshot.processes or ()
        if "torch" in process.frameworks
    )
    return tuple((process, reasons) for process, reasons in judged if reasons)
