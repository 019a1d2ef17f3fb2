"""What mpsbar.app runs first: it writes nothing into the bundle, and restores the environment."""

import os
import sys

sys.dont_write_bytecode = True  # one more file in the bundle would void its signature

# What py2app's start-up sets for this process. It would harm other Pythons that mpsbar runs: with
# PYTHONHOME they would not start. bin/mpsbar has saved the user's values.
CHANGED = (
    "PYTHONPATH", "PYTHONHOME", "PYTHONOPTIMIZE", "PYTHONDEBUG", "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING", "PYTHONDUMPREFS", "PYTHONMALLOCSTATS", "PYTHONUNBUFFERED",
    "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
OWN = ("RESOURCEPATH", "EXECUTABLEPATH", "ARGVZERO", "_PY2APP_LAUNCHED_", "__PYVENV_LAUNCHER__")


def restore_environment() -> None:
    for name in (*CHANGED, *OWN):
        os.environ.pop(name, None)
        saved = os.environ.pop(f"MPSBAR_SAVED_{name}", None)
        if saved is not None:
            os.environ[name] = saved


restore_environment()

from mpsbar.__main__ import main  # noqa: E402 - only now

main()
