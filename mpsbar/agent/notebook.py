"""In IPython and Jupyter: the %mpsbar magic, and the name of the notebook.

The rest of the agent is imported where it is used, as `methods` imports this module.
"""

import os
import sys
import threading
import time
from typing import Any, Optional

from .backends import IN_USE, NOT_KNOWN
from .frameworks import join_labels

Report = dict[str, Any]

USAGE = "use %mpsbar, %mpsbar free [--outputs] or %mpsbar why"
# `mpsbar why` takes a fraction of a second; a slow disk may add to that.
_WHY_SECONDS = 30.0
_STEP_SECONDS = 0.001
_UNDERSCORES = ("_", "__", "___")
_UNITS = ("B", "kB", "MB", "GB", "TB")
_COLUMNS = ("held", "allocated", "cached", "peak")
_REASONS = {
    "thread_computing": "another thread is computing",
    "thread_unproven": "another thread couldn't be shown to be waiting",
    "main_computing": "the main thread is computing",
    "main_unproven": "the main thread couldn't be shown to be waiting",
    "main_waiting": "the main thread is waiting and couldn't be reached",
    "switch_interval": "its thread switch interval is unusually long",
    "slow": "the machine was too busy",
    "free_threaded": "it runs without the GIL",
    "forked": "the process was forked meanwhile",
    "deep_recursion": "its call stack is too deep",
}


def load(shell: Any) -> None:
    """Show this process in mpsbar and give `shell` the %mpsbar magic. Never raises."""
    try:
        from .lifecycle import attach

        attach()

        def mpsbar(line: str) -> None:
            """%mpsbar: what this kernel holds and how far it is; %mpsbar free [--outputs] frees.
            %mpsbar why: how the last kernels of this notebook ended.

            free also drops the last traceback, and with --outputs all of Out: what they hold
            cannot be freed otherwise.
            """
            run_magic(shell, line)

        shell.register_magic_function(mpsbar, "line", "mpsbar")
    except Exception as error:  # noqa: BLE001 - a notebook must start without us
        _complain(f"%mpsbar couldn't be loaded: {error}")


def unload(shell: Any) -> None:
    """Take the magic away. The agent stays: others than the notebook may have attached it."""
    try:
        shell.magics_manager.magics["line"].pop("mpsbar", None)
    except Exception as error:  # noqa: BLE001 - as above
        _complain(f"%mpsbar couldn't be unloaded: {error}")


def find_name() -> Optional[str]:
    """The notebook's file name, without its folder, where this process is a kernel that knows it.

    A child of a kernel inherits JPY_SESSION_NAME, but is no notebook.
    """
    kernel = _kernel()
    if kernel is None:
        return None
    namespace = getattr(getattr(kernel, "shell", None), "user_ns", None) or {}
    for path in (os.environ.get("JPY_SESSION_NAME"), namespace.get("__vsc_ipynb_file__")):
        if type(path) is str and path.endswith(".ipynb"):
            return os.path.basename(path)[:300]
    return None


def run_magic(shell: Any, line: str) -> None:
    words = line.split()
    if not words:
        print(describe())  # noqa: T201 - a magic prints: it is its job
    elif words in (["free"], ["free", "--outputs"]):
        drop_errors(shell)
        if "--outputs" in words:
            drop_outputs(shell)
        print(free())  # noqa: T201 - as above
    elif words == ["why"]:
        print(why())  # noqa: T201 - as above
    else:
        _complain(f"{' '.join(words)[:60]!r} is not an option; {USAGE}")


# ------------------------------------------------------------------- what it holds
def describe() -> str:
    """A row for each allocator of this process, under one head, and how far its bars are."""
    from .methods import stats as read

    report = read({})
    memory, progress = _describe_memory(report["backends"]), describe_progress(report["progress"])
    return f"{memory}\n{progress}" if progress else memory


def _describe_memory(backends: "dict[str, Report]") -> str:
    if len(backends) > 1:
        backends.pop("cpu", None)  # every torch has it; worth a row only when it is all there is
    if not backends:
        return f"{join_labels('or')} not loaded yet"
    rows = [["device", *_COLUMNS]] if any(map(_is_used, backends.values())) else []
    rows += [[name, *_cells(backend)] for name, backend in backends.items()]
    return _align(rows)


def _cells(backend: Report) -> "list[str]":
    if not _is_used(backend):
        return ["unknown" if backend["state"] == NOT_KNOWN else backend["state"]]
    allocated, peak = backend["allocated"], backend["peak"]
    cached, bound = _cached(backend)
    return [size(_held(backend)), size(allocated), bound + size(cached), size(peak)]


def _is_used(backend: Report) -> bool:
    return bool(backend["state"] == IN_USE)


def _held(backend: Report) -> Optional[int]:
    numbers = (backend[name] for name in ("driver", "reserved", "allocated"))
    return next((number for number in numbers if number is not None), None)


def _cached(backend: Report) -> "tuple[Optional[int], str]":
    """What the allocator keeps for reuse; before torch 2.13 only a bound is known."""
    reserved, driver, allocated = backend["reserved"], backend["driver"], backend["allocated"]
    whole = driver if reserved is None else reserved
    if whole is None or allocated is None:
        return None, ""
    return max(0, whole - allocated), "≤ " if reserved is None else ""


def _align(rows: "list[list[str]]") -> str:
    widths = [
        max(len(row[column]) for row in rows if len(row) > column)
        for column in range(max(map(len, rows)))
    ]
    lines = []
    for name, *cells in rows:
        right = cells if len(cells) == 1 else map(str.rjust, cells, widths[1:])
        lines.append("  ".join([name.ljust(widths[0]), *right]))
    return "\n".join(lines)


# -------------------------------------------------- how far it is, as in ui/text/progress
def describe_progress(progress: Optional[Report]) -> str:
    """Epoch 3 · 62% · 3.1 it/s · 4 min left; inside a cell what its bars have counted so far."""
    if progress is None:
        return ""
    bars = [bar for bar in (progress["inner"], progress) if bar is not None and "done" in bar]
    speeds = [(bar["rate"], bar["unit"]) for bar in bars]
    speeds.append((progress["steps_per_second"], "step"))
    words = [bar["name"] for bar in bars if bar["name"]][:1]
    words.append(_say_done(progress))
    words += [_say_speed(rate, unit or "it") for rate, unit in speeds if rate is not None][:1]
    left = progress.get("seconds_left")
    if left is not None:
        words.append(f"{max(1, round(left))} s left" if left < 10 else f"{duration(left)} left")
    return " · ".join(words)


def _say_done(progress: Report) -> str:
    if "done" not in progress:
        return f"{progress['steps']:,} steps"
    done, total = progress["done"], progress["total"]
    if not total:
        return f"{done:,.0f} {progress['unit'] or 'it'}"
    return f"{100 if done >= total else min(99, round(done / total * 100))}%"


def _say_speed(rate: float, unit: str) -> str:
    if rate >= 1 or not rate:
        return f"{_figures(rate)} {unit}/s"
    return f"{_figures(1 / rate)} s/{unit}"


def _figures(number: float) -> str:
    return f"{number:,.0f}" if number >= 99.95 else f"{number:.1f}"


# ---------------------------------------------------------------------------- free
def free() -> str:
    """Free every cache from where the magic runs, and say how it ended."""
    from .free import FreeJob

    job = FreeJob(None)
    try:
        while (report := job.step()) is None:
            time.sleep(_STEP_SECONDS)  # on main the pending call that frees comes in between
    finally:
        _clean_up()
    return "\n".join([_how_it_ended(report), *_not_collected(report), *_not_known(report)])


def _clean_up() -> None:
    """After a Free, also one that a Ctrl-C has cut short."""
    from .gc_pause import end_job
    from .host_settings import restore_settings

    end_job()
    restore_settings()


def _how_it_ended(report: Report) -> str:
    if report["state"] == "busy":
        return f"busy: {_why(report['reason'])}; nothing was freed"
    errors = [each["error"] for each in report["backends"].values() if each.get("error")]
    if errors:
        return f"failed: {errors[0]}"
    words = f"freed {size(report['freed'])} in {duration(report['seconds'])}"
    pinned = _still_cached()
    return (
        f"{words}; {size(pinned)} can't be returned yet: live tensors share those blocks"
        if pinned
        else words
    )


def _why(reason: Report) -> str:
    code = reason["code"]
    if (
        code in ("main_computing", "main_unproven")
        and threading.current_thread() is threading.main_thread()
    ):
        code = ""  # that is this very magic
    words = _REASONS.get(code)
    if words is None:
        return "no safe moment was found"
    return f"{words} ({reason['where']})"


def _still_cached() -> int:
    from .methods import stats as read

    found = [_cached(each) for each in read({})["backends"].values() if _is_used(each)]
    return sum(cached or 0 for cached, bound in found if not bound)


def _not_collected(report: Report) -> "list[str]":
    toolkit = report["gui_toolkit"]
    if report["state"] == "busy" or report["collected"] or toolkit is None:
        return []
    return [f"without gc.collect(), which can crash a program that uses {toolkit}"]


def _not_known(report: Report) -> "list[str]":
    return [
        f"{name}: can't tell whether this process uses it; free it from mpsbar instead"
        for name in report["not_known"]
    ]


# ----------------------------------------------------------------- why a kernel died
def why() -> str:
    """How the last kernels of this notebook ended: the command `mpsbar why` knows."""
    command = _find_command()
    if command is None:
        return "mpsbar isn't installed in this environment; in a terminal: mpsbar why kernel"
    import subprocess  # a kernel has it loaded long ago

    name = find_name() or "notebook kernel"
    try:
        done = subprocess.run(
            [*command, "why", name], stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_WHY_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return f"mpsbar why failed: {error}"
    return (done.stdout or done.stderr).decode("utf-8", "replace").strip()


def _find_command() -> "Optional[list[str]]":
    """This environment's mpsbar, else the one on PATH."""
    from importlib import util

    try:
        if util.find_spec("mpsbar.cli") is not None:
            return [sys.executable, "-B", "-m", "mpsbar"]
    except ImportError:
        pass
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, "mpsbar")
        if os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK):
            return [path]
    return None


# --------------------------------------------------------- what notebooks hold by accident
def drop_errors(shell: Any) -> None:
    """Let go of the last failed cell: its traceback holds its frames, and they hold tensors."""
    for name in ("last_traceback", "last_value", "last_type", "last_exc"):
        if hasattr(sys, name):  # gone, not None: %debug and %tb look for the attribute
            delattr(sys, name)
    for path in (
        ("InteractiveTB", "tb"),
        ("InteractiveTB", "pdb"),  # after %debug; made anew when there is none
        ("SyntaxTB", "last_syntax_error"),
        ("last_execution_result", "error_in_exec"),
    ):
        holder = getattr(shell, path[0], None)
        if getattr(holder, path[1], None) is not None:
            setattr(holder, path[1], None)


def drop_outputs(shell: Any) -> None:
    """Empty Out and all that IPython made of it; a variable the user has assigned stays.

    Not %reset out: it leaves the last three in user_ns_hidden, and takes a user's own _ along.
    """
    hook, seen, hidden = shell.displayhook, shell.user_ns, shell.user_ns_hidden
    outputs = seen.get("_oh") or {}
    for number, value in list(outputs.items()):
        for namespace in (seen, hidden):
            if namespace.get(f"_{number}") is value:
                del namespace[f"_{number}"]
    outputs.clear()
    for name in _UNDERSCORES:
        value = getattr(hook, name, "")
        for namespace in (seen, hidden):
            if namespace.get(name) is value:
                namespace[name] = ""
        setattr(hook, name, "")
    if getattr(shell, "last_execution_result", None) is not None:
        shell.last_execution_result.result = None


# --------------------------------------------------- words, the same as in ui/text/wording
def size(count: Optional[int]) -> str:
    if count is None:
        return "?"
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    digits = 1 if unit >= 2 and value < 99.95 else 0
    return f"{value:.{digits}f} {_UNITS[unit]}"


def duration(seconds: float) -> str:
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 119.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7170 else f"{seconds / 3600:.0f} h"


def _kernel() -> Optional[Any]:
    """ipykernel's application, if this process is one."""
    application = getattr(sys.modules.get("ipykernel.kernelapp"), "IPKernelApp", None)
    return getattr(application, "_instance", None)


def _complain(text: str) -> None:
    if sys.stderr is not None:
        print(f"mpsbar: {text}", file=sys.stderr)  # noqa: T201 - the one line
