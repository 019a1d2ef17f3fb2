"""python -m trust doors | faults [SCALE] | soak [SECONDS]"""

import importlib
import sys


def main() -> int:
    suite, *numbers = sys.argv[1:] or ["doors"]
    return int(importlib.import_module(f"trust.{suite}").main(*map(float, numbers)))


if __name__ == "__main__":
    sys.exit(main())
