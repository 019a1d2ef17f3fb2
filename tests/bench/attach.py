"""`import mpsbar; attach()` after torch, in fresh processes (goal: under 3 ms and 200 kB)."""

import os
import statistics
import subprocess
import sys
from pathlib import Path

ROUNDS = 15

CODE = """
import os, time, torch
page = os.sysconf("SC_PAGE_SIZE") // 1024
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * page
resident()
before, start = resident(), time.perf_counter()
import mpsbar
mpsbar.attach()
end = time.perf_counter()
time.sleep(0.05)
print((end - start) * 1e3, resident() - before)
"""


def run(folder: Path) -> None:
    times, sizes = [], []
    for _ in range(ROUNDS):
        done = subprocess.run(
            [sys.executable, "-c", CODE], env=os.environ, capture_output=True, text=True, check=True
        )
        milliseconds, kilobytes = map(float, done.stdout.split())
        times.append(milliseconds)
        sizes.append(kilobytes)
    print(f"  {statistics.median(times):.2f} ms (best {min(times):.2f}), {statistics.median(sizes):.0f} kB"
          f" (median of {ROUNDS})")  # fmt: skip
