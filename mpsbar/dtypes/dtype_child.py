"""The child process of the dtype probe: runs operations and checks on one device, cell by cell.

A script of its own for any Python (3.9 and newer) with torch: it imports nothing of mpsbar but
child_answers, which starts it, and writes one marked JSON line as soon as each cell is known. A
crash or a hang costs the cell it happens in: the runner sees which was next, and starts the script
again without it. The plan comes as one JSON line on stdin: the device, the texts of operations.py
and checks.py, the cells that are known already, and the most memory to use.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import types
import warnings
from typing import Any, Callable  # noqa: UP035 - collections.abc's needs 3.9.2

from mpsbar.system.child_answers import (
    FALLBACK,
    NO_MEMORY,
    describe,
    find_torch,
    guard,
    import_torch,
    limit_mps_memory,
    lower_priority,
    read_claimed_dtypes,
    read_device_name,
    read_gpu_memory,
    read_python,
    send,
    start_device,
    take_stdout,
)

MARK = "\x1empsbar-probe "
SPEED = "speed:"  # before the name of an operation: its speeds
_LAST_RESORT_SECONDS = 1800  # SIGALRM ends us if we hang and the runner was killed
_LONGEST_TEXT = 600
# Speeds: rounds over all dtypes in turn, so that other work does not hit one dtype alone.
_ROUNDS, _ROUND_SECONDS, _MAX_CALLS = 5, 0.01, 50
# The longest that one call, and that the rounds of one operation may take.
_CALL_SECONDS, _SPEED_SECONDS = 0.2, 0.6
_FIRST_CALL_SECONDS = 1.0


def main() -> None:
    wire = take_stdout()
    plan = json.loads(sys.stdin.readline())
    lower_priority(_LAST_RESORT_SECONDS)
    _keep_compiled_in(plan.get("compile"))
    send(wire, MARK, "python", guard(read_python, "failed"))
    torch_files = guard(find_torch, "failed")
    send(wire, MARK, "torch", torch_files)
    if torch_files.get("found"):
        loaded = guard(import_torch, "failed")
        send(wire, MARK, "import", loaded)
        if "version" in loaded:
            _probe(wire, plan)
    send(wire, MARK, "end", {})


def _probe(wire: int, plan: dict[str, Any]) -> None:
    import torch

    operations, checks = (_load(name, plan[name]) for name in ("operations", "checks"))
    start = guard(lambda: _start_device(torch, plan["device"]), "failed")
    dtypes = [name for name in operations.DTYPES if hasattr(torch, name)]
    cells = _list_cells(operations, checks, dtypes, start.get("device"), plan.get("compile"))
    send(wire, MARK, "device", dict(start, cells=cells, load=_read_load(), cores=os.cpu_count()))
    if start.get("device") is None:
        return
    cases = _Cases(torch, start["device"], operations, checks)
    memory = _Memory(torch, start["device"], plan["ceiling"])
    known, starter = set(plan["skip"]), os.getppid()
    for cell in cells:
        if cell not in known:
            answer = guard(lambda name=cell: cases.run(name), "failed")  # type: ignore[misc]
            send(wire, MARK, "cell", dict(answer, cell=cell, memory=memory.used()))
            if memory.is_over() or os.getppid() != starter:
                return


def _list_cells(
    operations: Any, checks: Any, dtypes: list[str], device: str | None, with_compile: Any
) -> list[str]:
    """Lists cells in the order they are run: torch.compile is last, its import takes seconds."""
    plain = [name for name in operations.OPERATIONS if name != operations.COMPILE]
    cells = [f"{name}/{dtype}" for dtype in dtypes for name in plain]
    cells += checks.CHECKS
    if "float32" in dtypes:  # others are timed against it
        cells += [f"{SPEED}{name}" for name in operations.SPEEDS]
    if with_compile and device in ("mps", "cuda"):
        compiled = operations.OPERATIONS[operations.COMPILE][1]
        cells += [f"{operations.COMPILE}/{dtype}" for dtype in compiled if dtype in dtypes]
    return cells


def _keep_compiled_in(folder: Any) -> None:
    """Directs what torch.compile writes to a folder that the runner removes."""
    if isinstance(folder, str):
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.environ["TRITON_CACHE_DIR"] = folder
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"


def _read_load() -> float | None:
    """Reads the load average of the last minute."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def _load(name: str, text: str) -> Any:
    module = types.ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), vars(module))  # noqa: S102 - our own source, sent by the runner
    return module


class _Cases:
    """The operations and checks on one device."""

    def __init__(self, torch: Any, device: str, operations: Any, checks: Any) -> None:
        self.torch, self.device, self.operations, self.checks = torch, device, operations, checks

    def run(self, cell: str) -> dict[str, Any]:
        if cell in self.checks.CHECKS:
            return self._check(self.checks.CHECKS[cell])
        if cell.startswith(SPEED):
            return self._measure_speed(cell[len(SPEED) :])
        name, dtype = cell.split("/")
        if name == self.operations.COMPILE and not hasattr(self.torch, "compile"):
            return {"state": "meaningless"}
        build, meaningful = self.operations.OPERATIONS[name]
        if dtype not in meaningful:
            return {"state": "meaningless"}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = self._compare(build, dtype)
        return _read_warnings(answer, [_shorten(str(warning.message)) for warning in caught])

    def _compare(self, build: Callable[[Any], Any], dtype: str) -> dict[str, Any]:
        """Compare the result in `dtype` on the device with that of the widest dtype on the CPU."""
        target = self.operations.Target
        try:
            run = build(target(self.torch, self.device, dtype))
            got = [tensor.detach().cpu() for tensor in _as_list(run())]
        except Exception as error:  # noqa: BLE001 - whatever torch raises is the answer
            return _refusal(error, "unsupported")
        right = _as_list(build(target(self.torch, "cpu", dtype, wide=True))())
        off = max(map(self.operations.measure_error, got, right))
        if not off <= self.operations.TOLERANCE.get(dtype, 0.0):
            return {"state": "inaccurate", "error": _number(off)}
        return {"state": "works", "error": _number(off)}

    def _check(self, check: Callable[[Any, str], str | None]) -> dict[str, Any]:
        """Runs a check, whose text says what is silently wrong; raising is not silent."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.torch.manual_seed(7)
            try:
                wrong = check(self.torch, self.device)
            except Exception as error:  # noqa: BLE001 - whatever torch raises
                return _refusal(error, "refused")
        return {"state": "right"} if wrong is None else {"state": "wrong", "text": wrong}

    def _measure_speed(self, name: str) -> dict[str, Any]:
        """Times one call, in the fastest and the slowest round, for each dtype that works."""
        build, on_gpu, on_cpu, words = self.operations.SPEEDS[name]
        n = on_cpu if self.device == "cpu" else on_gpu
        runs: dict[str, tuple[Callable[[], Any], int]] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for dtype in self.operations.SPEED_DTYPES:
                target = self.operations.Target(self.torch, self.device, dtype)
                with contextlib.suppress(Exception):  # its cell says what torch raises
                    # Where half the size takes long, the whole could take ten seconds.
                    once = self._time_once(build(target, n // 2))
                    run = build(target, n)
                    if once <= _CALL_SECONDS:
                        once = self._time_once(run)
                    if once <= _CALL_SECONDS:
                        calls = int(_ROUND_SECONDS / max(once, 1e-6))
                        runs[dtype] = (run, max(1, min(calls, _MAX_CALLS)))
                if "float32" not in runs:  # nothing to compare with
                    break
            rounds = self._run_rounds(runs)
        seconds = {dtype: [min(times), max(times)] for dtype, times in rounds.items() if times}
        return {"state": "timed", "size": words.format(n=n), "seconds": seconds}

    def _run_rounds(self, runs: dict[str, tuple[Callable[[], Any], int]]) -> dict[str, list[float]]:
        rounds: dict[str, list[float]] = {dtype: [] for dtype in runs}
        deadline = time.perf_counter() + _SPEED_SECONDS
        for number in range(_ROUNDS):
            if number > 1 and time.perf_counter() > deadline:
                break
            for dtype, (run, calls) in runs.items():
                rounds[dtype].append(self._time(run, calls))
        return rounds

    def _time_once(self, run: Callable[[], Any]) -> float:
        """Times the second call, unless the first, which compiles, took too long."""
        first = self._time(run, 1)
        return first if first > _FIRST_CALL_SECONDS else self._time(run, 1)

    def _time(self, run: Callable[[], Any], calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            run()
        if self.device != "cpu":
            getattr(self.torch, self.device).synchronize()
        return (time.perf_counter() - start) / calls


def _refusal(error: Exception, state: str) -> dict[str, Any]:
    text = describe(error)
    return {"state": "no_memory" if NO_MEMORY.search(text) else state, "text": text}


def _read_warnings(answer: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    fallen = [text for text in texts if FALLBACK.search(text)]
    if fallen and answer["state"] == "works":
        return dict(answer, state="fallback", text=fallen[0])
    disabled = [text for text in texts if "isabling autocast" in text]
    if disabled and answer["state"] == "unsupported":
        return dict(answer, text=disabled[0])
    return answer


def _shorten(text: str) -> str:
    """Returns the warning without the place in torch's source."""
    return text.partition(" (Triggered internally")[0][:_LONGEST_TEXT]


def _start_device(torch: Any, wanted: str) -> dict[str, Any]:
    device = start_device(torch, wanted)
    if device is None:
        return {"device": None, "missing": wanted}
    name, dtypes = read_device_name(torch, device), _read_claimed_dtypes(torch, device)
    return {"device": device, "name": name, "dtypes": dtypes}


def _read_claimed_dtypes(torch: Any, device: str) -> list[str] | None:
    """Reads the dtypes that torch claims to support on this device."""
    try:
        is_of_device = torch.accelerator.current_accelerator().type == device
        return read_claimed_dtypes(torch) if is_of_device else None
    except Exception:  # noqa: BLE001 - not there, or not for this device
        return None


class _Memory:
    """Keeps us within `ceiling` bytes above what torch itself takes: by a limit where one can be
    set, and by a reading after each cell."""

    def __init__(self, torch: Any, device: str, ceiling: int) -> None:
        self.torch, self.device, self.ceiling = torch, device, ceiling
        with contextlib.suppress(Exception):  # an older torch, another system: only readings
            self._limit()
        self.before = self._taken()

    def used(self) -> int | None:
        taken = self._taken()
        return None if taken is None or self.before is None else max(0, taken - self.before)

    def is_over(self) -> bool:
        if (self.used() or 0) > self.ceiling and self.device != "cpu":
            getattr(self.torch, self.device).empty_cache()  # frees cached graphs, too
        return (self.used() or 0) > self.ceiling

    def _limit(self) -> None:
        if self.device == "mps":
            limit_mps_memory(self.torch, self.ceiling)
        elif self.device == "cuda":
            whole = self.torch.cuda.get_device_properties(0).total_memory
            self.torch.cuda.set_per_process_memory_fraction(min(1.0, self.ceiling / whole))
        elif sys.platform == "linux":
            import resource

            most = _read_status("VmData") + self.ceiling
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))

    def _taken(self) -> int | None:
        """Reads how much memory we have taken: of the GPU, or on the CPU the process's peak.

        With a GPU that peak includes the GPU's libraries.
        """
        try:
            if self.device == "cpu":
                return _read_peak()
            return read_gpu_memory(self.torch, self.device)
        except Exception:  # noqa: BLE001 - not known here
            return None


def _read_peak() -> int:
    if sys.platform == "linux":  # where ru_maxrss includes the peak of our parent
        return _read_status("VmHWM")
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _read_status(name: str) -> int:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123
        line = next(line for line in file if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def _as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def _number(value: float) -> float | None:
    """Replaces infinity, which JSON does not have, by None."""
    return value if value < float("inf") else None


if __name__ == "__main__":
    main()
    os._exit(0)  # all answers are sent; a crash of torch at exit does not matter
