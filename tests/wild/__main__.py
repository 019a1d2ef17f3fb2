"""`make wild`: every program of tests/wild/programs, one at a time, in the Python that has them."""

import os
import sys

from signals_kit import restore_signals

from wild.runner import HEAD, PROGRAMS, run_program

# Modules that programs import.
PARTS = {"small_model", "tiny_text", "web_app", "ask_web_app"}


def main(python: str, wanted: list[str]) -> int:
    names = wanted or sorted({path.stem for path in PROGRAMS.glob("*.py")} - PARTS)
    print(HEAD, flush=True)
    rows = []
    for name in names:
        rows.append(run_program(name, python))
        print(rows[-1], flush=True)
    same = sum(row.verdict == "same" for row in rows)
    print(f"{same} of {len(names)} as without mpsbar")
    return 0 if all(row.is_good for row in rows) else 1


if __name__ == "__main__":
    restore_signals()
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2:]))
