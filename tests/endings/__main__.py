"""The campaign: 300 real workers while mpsbar runs, 50 while it does not. Prints a table of verdicts."""

import os
import shutil
import sys
import time
from collections import Counter

from signals_kit import restore_signals
from worker_kit import Workers

from endings.campaign import find_library, judge, run_seen, run_unseen, usable_ways
from endings.end_cases import Way

BATCH = 10


def repeat(ways: list[Way], number: int) -> list[Way]:
    """So many of them, each in turn; those that import a framework only twice."""
    cheap = [way for way in ways if not way.needs]
    dear = [way for way in ways if way not in cheap] * 2
    dear = dear[: max(0, number // 4)]
    turns = [cheap[n % len(cheap)] for n in range(number - len(dear))]
    return turns + dear


def main(seen: int, unseen: int) -> int:
    workers = Workers()
    os.environ["MPSBAR_RUN_DIR"] = str(workers.run_dir)
    os.environ["MPSBAR_DATA_DIR"] = str(workers.folder / "data")
    from mpsbar.end_reader import read_all_ends
    from mpsbar.monitor import Monitor

    library = find_library(workers)
    ways, reasons = usable_ways()
    right, wrong, said = Counter(), Counter(), []
    began = time.monotonic()
    monitor = Monitor()
    monitor.tick()
    batch = repeat(ways, seen)
    for first in range(0, len(batch), BATCH):
        for way, problem in run_seen(monitor, workers, batch[first : first + BATCH], library):
            (wrong if problem else right)[way.name, "watched"] += 1
            said += [f"{way.name}: {problem}"] if problem else []
    monitor.close()
    batch = repeat(ways, unseen)
    for first in range(0, len(batch), BATCH):
        pids = run_unseen(workers, batch[first : first + BATCH], library)
        found = {end.pid: end for end in read_all_ends(time.time())}
        for pid, way in pids.items():
            end = found.get(pid)
            problem = None
            if way.unseen != "unknown":
                problem = judge(way, end, False)
            elif end is not None:
                problem = f"{end.verdict} though it left nothing"
            (wrong if problem else right)[way.name, "not watched"] += 1
            said += [f"{way.name}: {problem}"] if problem else []
    print(f"{'how it ended':34} {'watched':>8} {'wrong':>6} {'not watched':>12} {'wrong':>6}")
    for way in ways:
        row = [c[way.name, k] for k in ("watched", "not watched") for c in (right, wrong)]
        print(f"{way.name:34} {row[0]:8} {row[1]:6} {row[2]:12} {row[3]:6}")
    for name, reason in reasons.items():
        print(f"{name:34} not tried: {reason}")
    total = sum(right.values()) + sum(wrong.values())
    print(f"{sum(right.values())} of {total} right in {time.monotonic() - began:.0f} s")
    print(*said, sep="\n")
    shutil.rmtree(workers.folder, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    restore_signals()
    numbers = [int(text) for text in sys.argv[1:3]]
    sys.exit(main(*(numbers or [300, 50])))
