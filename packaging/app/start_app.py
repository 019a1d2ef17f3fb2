"""What mpsbar.app runs first: it writes nothing into the bundle, restores the environment, and
drops the argument that macOS may add."""

import os
import sys

sys.dont_write_bytecode = True  # one more file in the bundle would void its signature

# What py2app's start-up sets for this process. It would harm other Pythons that mpsbar runs: with
# PYTHONHOME they would not start. bin/mpsbar has saved the user's values.
CHANGED = (
    "PYTHONPATH", "PYTHONHOME", "PYTHONOPTIMIZE", "PYTHONDEBUG", "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING", "PYTHONDUMPREFS", "PYTHONMALLOCSTATS", "PYTHONUNBUFFERED",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "LC_CTYPE",
)  # fmt: skip
OWN = ("RESOURCEPATH", "EXECUTABLEPATH", "ARGVZERO", "_PY2APP_LAUNCHED_", "__PYVENV_LAUNCHER__")


def restore_environment() -> None:
    for name in (*CHANGED, *OWN):
        os.environ.pop(name, None)
        saved = os.environ.pop(f"MPSBAR_SAVED_{name}", None)
        if saved is not None:
            os.environ[name] = saved


def drop_process_number() -> None:
    """macOS starts a downloaded app the first time with -psn_0_12345, no command of ours."""
    sys.argv[1:] = [word for word in sys.argv[1:] if not word.startswith("-psn_")]


restore_environment()
drop_process_number()

from mpsbar.__main__ import main  # noqa: E402 - only now

main()
