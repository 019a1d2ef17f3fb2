"""`mpsbar run` puts this folder first on PYTHONPATH: it watches for the frameworks' imports.

A user's own sitecustomize still runs, as if this one were not there.
"""

import os
import sys


def _load(name: str, path: str):  # type: ignore[no-untyped-def]  # noqa: ANN202
    """Runs a file of the agent. importlib.util would take 8 ms on Python 3.9: it imports typing."""
    module = type(sys)(name)
    loader = type(__spec__.loader)(name, path)  # type: ignore[misc,call-arg]
    exec(loader.get_code(name), module.__dict__)  # type: ignore[union-attr]  # noqa: S102
    return module


def _install(folder: str) -> None:
    hook = _load("_mpsbar_start", os.path.join(folder, "startup_hook.py"))
    frameworks = _load("_mpsbar_frameworks", os.path.join(folder, "frameworks.py"))
    hook.NAMES = tuple(framework.module for framework in frameworks.FRAMEWORKS)
    sys.modules["_mpsbar_start"] = hook
    hook.install(folder)


def _run_users_own(here: str) -> None:
    """Runs the sitecustomize that Python would have found; what it raises is the user's."""
    ours = sys.modules.pop("sitecustomize")
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    try:
        import sitecustomize  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", ours)  # site looks for it and would complain


_here = os.path.dirname(os.path.abspath(__file__))
try:
    _install(os.path.dirname(_here))
except Exception:  # noqa: BLE001, S110 - the program must run as without us
    pass
_run_users_own(_here)
