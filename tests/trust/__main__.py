"""python -m trust doors | faults [SCALE] | soak [SECONDS]"""

import importlib
import os
import shutil
import sys

from signals_kit import restore_signals

_ALONE = "MPSBAR_TRUST_ALONE"
# The shell is the first process there, and takes leave of those whose parents have ended.
_ISOLATE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", '"$@"; exit $?', "sh"]  # fmt: skip


def main() -> int:
    if sys.platform == "linux" and os.geteuid() == 0 and shutil.which("unshare"):
        isolate()
    suite, *numbers = sys.argv[1:] or ["doors"]
    return int(importlib.import_module(f"trust.{suite}").main(*map(float, numbers)))


def isolate() -> None:
    """Goes on in a pid namespace: other people's processes change no figure, and none of ours stays."""
    if _ALONE not in os.environ:
        os.environ[_ALONE] = "1"
        os.execvp(_ISOLATE[0], [*_ISOLATE, sys.executable, "-m", "trust", *sys.argv[1:]])


if __name__ == "__main__":
    restore_signals()
    sys.exit(main())
