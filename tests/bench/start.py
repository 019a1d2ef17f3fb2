"""What `mpsbar enable` adds to the start of a Python that never imports torch (goal: 0.5 ms).

Two environments of the same Python, one of them enabled, started in turn.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from mpsbar.workers.enable import enable
from mpsbar.workers.environments import read_environment

ROUNDS = 400


def run(folder: Path) -> None:
    base = getattr(sys, "_base_executable", sys.executable)
    plain, enabled = (make(folder / name, base) for name in ("plain", "enabled"))
    enable(read_environment(enabled))
    times: dict[str, list[tuple[float, float]]] = {plain: [], enabled: []}
    for python in (plain, enabled) * 5:
        measure(python)
    for _ in range(ROUNDS):
        for python, spent in times.items():
            spent.append(measure(python))
    for at, kind in enumerate(("wall", "CPU")):
        bare = statistics.median(spent[at] for spent in times[plain])
        pairs = zip(times[plain], times[enabled], strict=True)
        added = [after[at] - before[at] for before, after in pairs]
        error = statistics.stdev(added) / ROUNDS**0.5
        print(f"  {kind}: bare start {bare:.2f} ms, added"
              f" {statistics.median(added):.2f} ms ± {error:.2f} (median of {ROUNDS} pairs)")  # fmt: skip


def make(folder: Path, base: str) -> str:
    subprocess.run([base, "-m", "venv", "--without-pip", str(folder)], check=True)
    return str(folder / "bin" / "python")


def measure(python: str) -> tuple[float, float]:
    """Milliseconds of wall time and of CPU; the latter says more where something else runs."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    start = time.perf_counter()
    pid = os.posix_spawn(python, [python, "-c", "pass"], env)
    _, status, used = os.wait4(pid, 0)
    assert status == 0
    return (time.perf_counter() - start) * 1e3, (used.ru_utime + used.ru_stime) * 1e3
