"""`make wild`: every program of tests/wild/programs, one at a time, in the Python that has them."""

import os
import sys

from wild.runner import HEAD, PROGRAMS, run_program

# Modules that programs import.
PARTS = {"small_model", "web_app", "ask_web_app"}


def main(python: str, wanted: list[str]) -> int:
    names = wanted or sorted({path.stem for path in PROGRAMS.glob("*.py")} - PARTS)
    print(HEAD, flush=True)
    bad = 0
    for name in names:
        row = run_program(name, python)
        bad += not row.is_good
        print(row, flush=True)
    print(f"{len(names) - bad} of {len(names)} as without mpsbar")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2:]))
