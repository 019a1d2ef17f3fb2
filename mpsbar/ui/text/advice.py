"""What to do next, in words: a sentence for each step of core/advice.py. Pure."""

import shlex
from collections.abc import Mapping
from typing import get_args

from mpsbar.core.findings import Advice, Value
from mpsbar.core.naming import Kind, printable
from mpsbar.language import _
from mpsbar.ui.text.cells import cut_middle
from mpsbar.ui.text.wording import UNKNOWN, clock, duration, how_to_connect, size

_SIZES = {"available", "budget", "cached", "growth", "used", "whole"}
_TIMES = {"seconds"}
_CLOCKS = {"time"}
_COMMANDS = {"package", "python"}
_NAME_WIDTH = 40


def say_advice(advice: Advice, name: str | None = None, with_commands: bool = True) -> str:
    """One step, with the command to type if there is one; without: as the menu words it."""
    words = say_values(advice.values, advice.pid, name)
    why = advice.values.get("why")
    code = f"{advice.code}.{why}" if why else advice.code
    if advice.code == "connect":
        words["how"] = _how(advice.values)
        code = "connect" if advice.values.get("number") == 1 else "connect.many"
    if code == "report_bug" and not with_commands:
        return _("If it happens again, report it with Copy Diagnostics")
    template = _advice().get(code, _("{code} (no description)"))
    return fill_in(template, {**words, "code": printable(code)})


# A function, not a constant: a language is chosen after this module is imported.
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
        "connect.many": _("Connect {name}, one of {number} unconnected processes: {how}"),
        "watermark": _(
            "Let {name} use more memory, at the risk of slowing the whole computer: "
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO=1.0 (0.0 removes the limit)"
        ),
        "watermark_lower": _(
            "Let {name} fail with an error message before the system kills it: "
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.7 PYTORCH_MPS_LOW_WATERMARK_RATIO=0.6"
        ),
        "watch_memory": _(
            "Run {name} again with mpsbar running: its last minutes of memory show whether the "
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
        "newer_macos": _("Install the newest macOS: it fixes kernel panics under GPU load"),
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


class _Words(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return UNKNOWN


def fill_in(template: str, words: Mapping[str, str]) -> str:
    """Returns the template with these words; what is not among them is unknown."""
    return template.format_map(_Words(words))


def say_values(values: Mapping[str, Value], pid: int | None, name: str | None) -> dict[str, str]:
    """Returns the words for the values of a reason or a step, and for the process it is about."""
    words = {key: _say_value(key, value) for key, value in values.items()}
    words["pid"] = UNKNOWN if pid is None else str(pid)
    if name:
        words["name"] = cut_middle(name, _NAME_WIDTH)
    else:
        words["name"] = _("a process") if pid is None else _("process {pid}").format(pid=pid)
    return words


def _say_value(key: str, value: Value) -> str:
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
