"""The first of our code in mpsbar.app: nothing is written into it, and its Python stays its own."""

import os
import sys

sys.dont_write_bytecode = True  # a file more in the bundle, and its signature is void

# What py2app's start-up sets for this process. In that of another Python it does harm: PYTHONHOME
# alone would keep it from starting. bin/mpsbar has kept what the user had.
CHANGED = (
    "PYTHONPATH", "PYTHONHOME", "PYTHONOPTIMIZE", "PYTHONDEBUG", "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING", "PYTHONDUMPREFS", "PYTHONMALLOCSTATS", "PYTHONUNBUFFERED",
    "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
OWN = ("RESOURCEPATH", "EXECUTABLEPATH", "ARGVZERO", "_PY2APP_LAUNCHED_", "__PYVENV_LAUNCHER__")


def restore_environment() -> None:
    for name in (*CHANGED, *OWN):
        os.environ.pop(name, None)
        kept = os.environ.pop(f"MPSBAR_KEPT_{name}", None)
        if kept is not None:
            os.environ[name] = kept


restore_environment()

from mpsbar.__main__ import main  # noqa: E402 - only now

main()
