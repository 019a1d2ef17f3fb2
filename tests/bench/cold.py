"""Commands from cold (goals: mpsbar status within 4 times python -c pass, status --format under 60 ms)."""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.child import running
from bench.tick import WORKER, WORKERS

ROUNDS = 30
MPSBAR = [sys.executable, "-m", "mpsbar"]
LINE = [*MPSBAR, "status", "--format", "{held} {gpu} {progress}"]


def run(folder: Path) -> None:
    """In turns: whatever else runs here disturbs each alike."""
    home = folder / "home"
    home.mkdir()
    env = os.environ | {"HOME": str(home), "XDG_STATE_HOME": str(home), "XDG_CACHE_HOME": str(home)}
    # As installed: with bytecode, which a checkout may lack where Python is told to write none.
    env |= {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    commands = {"python -c pass": [sys.executable, "-c", "pass"], "status": [*MPSBAR, "status"]}
    times: dict[str, list[float]] = {}
    with running(WORKER, WORKERS):
        for command in (*commands.values(), LINE):
            _wall(command, env)
        for _ in range(ROUNDS):
            for name, command in commands.items():
                times.setdefault(name, []).append(_wall(command, env))
            time.sleep(2.1)  # what the last one wrote is old by now
            times.setdefault("status --format, read anew", []).append(_wall(LINE, env))
            times.setdefault("status --format, within 2 s", []).append(_wall(LINE, env))
    middle = {name: statistics.median(spent) for name, spent in times.items()}
    for name, spent in times.items():
        low, high = min(spent), max(spent)
        print(f"  {name}: {middle[name]:.0f} ms ({low:.0f} to {high:.0f})")
    ratio = middle["status"] / middle["python -c pass"]
    print(f"  mpsbar status from cold / python -c pass: {ratio:.1f} (goal: 4)")


def _wall(command: list[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1e3
