"""The sentences for the health of this computer and for the advice. Pure."""

import shlex
from collections.abc import Mapping
from typing import get_args

from mpsbar.core.findings import Advice, Health, Reason, Value
from mpsbar.core.naming import Kind, printable
from mpsbar.language import _
from mpsbar.ui.text.cells import cut_middle
from mpsbar.ui.text.progress import say_speeds
from mpsbar.ui.text.wording import UNKNOWN, clock, duration, how_to_connect, size

_SIZES = {"available", "budget", "cached", "growth", "used", "whole"}
_TIMES = {"seconds"}
_CLOCKS = {"time"}
_COMMANDS = {"package", "python"}
_NAME_WIDTH = 40
# Reasons that say that not enough is known to call it well.
UNKNOWN_CODES = ("unknown", "not_judged", "pressure_unknown")


def is_unknown(health: Health) -> bool:
    """Returns whether too little could be read to call it well."""
    return any(reason.code in UNKNOWN_CODES for reason in health.reasons)


def say_health(health: Health, names: Mapping[int, str]) -> str:
    """One sentence, whatever the level; `names` by pid."""
    if not health.reasons:
        return _("No problems")
    worst = health.reasons[0]
    words = say_reason(worst, names.get(worst.pid) if worst.pid is not None else None)
    if health.level == "ok":
        is_well = worst.code not in UNKNOWN_CODES
        return _("No problems; {reason}").format(reason=words) if is_well else words
    more = sum(reason.level != "ok" for reason in health.reasons) - 1
    return _("{reason} (and {n} more)").format(reason=words, n=more) if more else words


def say_reason(reason: Reason, name: str | None = None) -> str:
    words = _words(reason.values, reason.pid, name)
    if reason.code == "slowed":
        words |= _slowed_words(reason.values, words)
    template = _reasons(reason.level).get(reason.code, _("{code} (no description)"))
    return template.format_map(_Words(words, code=printable(reason.code)))


def say_advice(advice: Advice, name: str | None = None, with_commands: bool = True) -> str:
    """One step, with the command to type if there is one; without: as the menu words it."""
    words = _words(advice.values, advice.pid, name)
    why = advice.values.get("why")
    code = f"{advice.code}.{why}" if why else advice.code
    if advice.code == "connect":
        words["how"] = _how(advice.values)
        code = "connect" if advice.values.get("number") == 1 else "connect.many"
    if code == "report_bug" and not with_commands:
        return _("If it happens again, report it with Copy Diagnostics")
    template = _advice().get(code, _("{code} (no description)"))
    return template.format_map(_Words(words, code=printable(code)))


def _slowed_words(values: Mapping[str, Value], words: Mapping[str, str]) -> dict[str, str]:
    """Two speeds in one unit, the time of day, and what coincided, if anything."""
    before, now, unit, since = (values.get(key) for key in ("before", "now", "unit", "since"))
    found = {}
    if isinstance(before, int | float) and isinstance(now, int | float) and before and now:
        found["before"], found["now"] = say_speeds(float(before), float(now), str(unit or ""))
    found["at"] = clock(since if isinstance(since, int | float) else None)
    cause = {
        "nap": _("; macOS has slowed it down since, because its windows are hidden (App Nap)"),
        "swap": _("; at the same time, swap grew by {growth}"),
        "pressure": _("; at the same time, memory pressure rose"),
        "fallback": _("; more of its operations have run on the CPU since, because MPS lacks them"),
        "other": _("; {other} began to use the GPU"),
        "battery": _("; the computer has been on battery since"),
        "free": _("; its cache was freed shortly before"),
    }.get(str(values.get("cause")), "")
    return found | {"meanwhile": cause.format_map(_Words(words))}


class _Words(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return UNKNOWN


# Functions, not constants: a language is chosen after this module is imported.
def _reasons(level: str) -> dict[str, str]:
    return {
        "pressure": _("Memory pressure is critical")
        if level == "critical"
        else _("Memory pressure is high"),
        "memory_filling": _("At this rate, memory will be full in {seconds} ({available} left)"),
        "gpu_filling": _(
            "At this rate, GPU memory will be full in {seconds} ({used} of {budget} in use)"
        ),
        "process_memory": _("{name} is using {used} of the GPU's {budget}"),
        "gpu_memory": _("GPU memory is running low: {used} of {budget} in use"),
        "leak": _(
            "{name} grew by {growth} more than its tensors in {seconds}: possible memory leak"
        ),
        "swap_growing": _("Swap grew by {growth} in {seconds} (now {used})"),
        "swap_used": _("Memory is short: {used} of swap in use, {available} of {whole} available"),
        "slowed": _("{name} slowed from {before} to {now} at {at}{meanwhile}"),
        "cache": _("{name} has a cache of {cached} that can be freed"),
        "gpu_reset": _(
            "The GPU was reset at {time}; results since then may be wrong: {names} (torch before "
            "2.15 does not raise an error)"
        ),
        "unknown": _("Couldn't read this computer's memory"),
        "pressure_unknown": _("Memory pressure is unknown; no other problems"),
        "not_judged": _("Status unknown"),
    }


def _advice() -> dict[str, str]:
    return {
        "free_cache": _("Free {cached} cached by {name}: mpsbar free {pid}"),
        "free_when_possible": _(
            "{name} was busy; free {cached} when possible: mpsbar free --when-possible {pid}"
        ),
        "free_all": _("Free {number} caches, {cached} in total: mpsbar free --all"),
        "smaller_batch": _(
            "Use a smaller batch size in {name}: halve it until it fits (4 to 32 is typical)"
        ),
        "shorter_input": _(
            "Give {name} smaller inputs: audio in chunks of 10 to 20 s, smaller images,"
            " shorter texts"
        ),
        "float32": _(
            "Use float32 instead of {dtypes} (failed operations here: {operations}):"
            " model.to(torch.float32)"
        ),
        "newer_torch": _(
            "{name} uses torch {version}; with 2.13 or later, mpsbar can see and free more: "
            "{python} -m pip install --upgrade {package}"
        ),
        "fallback_on": _(
            "{name} runs operations that MPS lacks on the CPU, which is slow; to find them,"
            " start it with mpsbar run --explain"
        ),
        "core_ml_or_mlx": _(
            "{name} serves on MPS; for inference alone, MLX (pip install mlx) or Core ML (pip "
            "install coremltools) may be faster"
        ),
        "connect": _("Connect {name} to see and free its cache: {how}"),
        "connect.many": _("Connect {name}, one of {number} processes not connected: {how}"),
        "watermark": _(
            "Let {name} use more memory, at the risk of slowing the whole computer: "
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO=1.0 (0.0 removes the limit)"
        ),
        "watermark_lower": _(
            "Let {name} fail with an error message before the system kills it: "
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.7 PYTORCH_MPS_LOW_WATERMARK_RATIO=0.6"
        ),
        "watch_memory": _(
            "Start {name} again while mpsbar runs: memory in its last minutes tells whether the "
            "system or a person ended it"
        ),
        "shorter_kernels": _(
            "Give the GPU less work at once in {name}: a smaller batch, shorter sequences"
        ),
        "relax_timeout": _(
            "If it happens again, try AGX_RELAX_CDM_CTXSTORE_TIMEOUT=1 in the environment of "
            "{name} (it has helped in some cases)"
        ),
        "display_asleep": _(
            "Let the display sleep while {name} runs: macOS ends long GPU work to keep the screen "
            "responsive"
        ),
        "restart_process": _(
            "Start {name} again: macOS ignores the GPU work of a process after repeated errors"
        ),
        "redo_results": _(
            "Go back to a checkpoint from before the reset: results after it may be wrong"
        ),
        "newer_framework": _("Update the framework that {name} uses, and macOS"),
        "newer_macos": _("Install the newest macOS: kernel panics under GPU load are fixed there"),
        "report_bug": _("If it happens again, report it with: mpsbar doctor"),
        "fault_handler": _(
            "To see where in Python {name} was, start it with python -X faulthandler"
        ),
        "torch_that_raises": _(
            "{name} uses torch {version}; from 2.15 on, a failed command buffer on MPS raises an "
            "error instead of continuing with wrong results"
        ),
        "float32_on_mps": _(
            "Use float32 instead of float64 in {name}: MPS has no float64; call "
            "model.to(torch.float32), and convert its inputs too"
        ),
        "try_float32": _(
            "If {name} uses float16 or bfloat16, try float32: Metal aborts when some dtypes are "
            "mixed"
        ),
        "fallback_to_cpu": _(
            "Set PYTORCH_ENABLE_MPS_FALLBACK=1 in the environment of {name} to run operations "
            "that MPS lacks on the CPU (slow)"
        ),
        "activity_monitor.leak": _("Watch {name} in Activity Monitor: Memory tab, PID {pid}"),
        "activity_monitor.speed": _("Watch the GPU in Activity Monitor: Window > GPU History"),
        "instruments.leak": _(
            "See what {name} allocates in Instruments: Allocations template, PID {pid}"
        ),
        "instruments.speed": _(
            "See what the GPU does for {name}: xcrun xctrace record"
            " --template 'Metal System Trace' --time-limit 10s --attach {pid}"
        ),
        "torch_profiler.leak": _(
            "Find out what allocates memory in {name}: with "
            "torch.profiler.profile(profile_memory=True) as p, then "
            "print(p.key_averages().table())"
        ),
        "torch_profiler.speed": _(
            "Find the slow operations in {name}: with torch.profiler.profile() as p, then "
            "print(p.key_averages().table())"
        ),
    }  # fmt: skip


def _words(values: Mapping[str, Value], pid: int | None, name: str | None) -> dict[str, str]:
    words = {key: _word(key, value) for key, value in values.items()}
    words["pid"] = UNKNOWN if pid is None else str(pid)
    if name:
        words["name"] = cut_middle(name, _NAME_WIDTH)
    else:
        words["name"] = _("a process") if pid is None else _("process {pid}").format(pid=pid)
    return words


def _word(key: str, value: Value) -> str:
    number = value if isinstance(value, int | float) else None
    if key in _SIZES:
        return size(None if number is None else int(number))
    if key in _TIMES:
        return duration(number)
    if key in _CLOCKS:
        return clock(number)
    if key in _COMMANDS:
        return shlex.quote(_path(value))
    return UNKNOWN if value is None else printable(str(value))


def _path(value: Value) -> str:
    return printable(str(value or "python"), most=4096)


def _how(values: Mapping[str, Value]) -> str:
    wanted = values.get("kind")
    kind: Kind = next((known for known in get_args(Kind) if known == wanted), "script")
    return how_to_connect(_path(values.get("python")), kind)
