"""make bench [ARGS="NAME …"]: run the benchmarks, all or the named ones."""

import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

from signals_kit import restore_signals

from bench import (
    attach,
    cold,
    deep,
    ending,
    fleet,
    free,
    growth,
    history,
    hosts,
    limit,
    many,
    menubar,
    poll,
    probe,
    progress,
    start,
    tick,
    top,
    training,
)

BENCHMARKS = {
    "training": training,
    "attach": attach,
    "start": start,
    "ending": ending,
    "free": free,
    "limit": limit,
    "poll": poll,
    "tick": tick,
    "growth": growth,
    "cold": cold,
    "menubar": menubar,
    "history": history,
    "probe": probe,
    "deep": deep,
    "progress": progress,
    "top": top,
    "many": many,
    "fleet": fleet,
    "hosts": hosts,
}


def main(names: list[str]) -> int:
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        print(
            f"bench: no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}"
        )
        return 2
    folder = Path(tempfile.mkdtemp(prefix="mpsbar-"))
    os.environ["MPSBAR_RUN_DIR"] = str(folder / "run")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # users' Pythons keep what they compiled
    print_environment()
    try:
        for name in names or BENCHMARKS:
            print(
                f"\n{name}: {(BENCHMARKS[name].__doc__ or '').strip().splitlines()[0]}", flush=True
            )
            BENCHMARKS[name].run(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def print_environment() -> None:
    from importlib.metadata import version

    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {load}")
    print(
        f"Python {platform.python_version()}, torch {version('torch')}, mpsbar {version('mpsbar')}"
    )


if __name__ == "__main__":
    restore_signals()
    sys.exit(main(sys.argv[1:]))
