"""The quick dtype probe on the CPU (goal: the import of torch and at most 2 s; 256 MB above torch's own).

The same Python imports torch and is probed, in turn; both at the lowest priority.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from mpsbar.dtypes.runner import ProbeRunner

ROUNDS = 7


def run(folder: Path) -> None:
    imports, probes, sizes = [], [], []
    for _ in range(ROUNDS):
        imports.append(measure_import())
        probe = ProbeRunner([sys.executable], "cpu").run()
        if probe.ended != "ok" or probe.seconds is None or probe.memory is None:
            raise SystemExit(f"bench: the probe ended as {probe.ended}: {probe.error}")
        probes.append(probe.seconds)
        sizes.append(probe.memory)
    added = [whole - part for whole, part in zip(probes, imports, strict=True)]
    number = len(probe.cells) + len(probe.checks)
    print(f"  import of torch {statistics.median(imports):.2f} s, then {statistics.median(added):.2f} s"
          f" (worst {max(added):.2f}) for {number} cells and checks; memory at most {max(sizes) / 2**20:.0f} MB"
          f" of {(probe.ceiling or 0) >> 20} (median of {ROUNDS})")  # fmt: skip


def measure_import() -> float:
    code = "import os; os.nice(19); import torch; os._exit(0)"
    start = time.perf_counter()
    subprocess.run([sys.executable, "-B", "-c", code], env=os.environ, check=True)
    return time.perf_counter() - start
