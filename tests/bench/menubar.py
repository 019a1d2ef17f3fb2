"""The menu bar app on the double of AppKit, whose own cost is in all figures (goals: refresh 1 ms unchanged, 5 ms changed; first menu 0.5 s; 40 MB; idle 0.5 %)."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).with_name("menubar_child.py")
TESTS = HERE.parents[1]


def run(folder: Path) -> None:
    for name in ("refresh", "start", "idle"):
        for line in _ask(name, folder):
            print(f"  {line}", flush=True)


def _ask(name: str, folder: Path) -> list[str]:
    places = {f"MPSBAR_{place}_DIR": str(folder / place) for place in ("DATA", "CONFIG", "LOG")}
    environment = os.environ | places | {"PYTHONPATH": str(TESTS), "HOME": str(folder)}
    command = [sys.executable, str(HERE), name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    lines: list[str] = json.loads(done.stdout.splitlines()[-1])
    return lines
