"""`mpsbar run` puts this folder first on PYTHONPATH: watch for torch, then step aside.

A user's own sitecustomize still runs, as if this one were not there.
"""

import os
import sys


def _install(here: str) -> None:
    from importlib import util

    folder = os.path.dirname(here)
    spec = util.spec_from_file_location("_mpsbar_start", os.path.join(folder, "startup_hook.py"))
    assert spec is not None
    assert spec.loader is not None
    hook = sys.modules["_mpsbar_start"] = util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    hook.install(folder)


def _step_aside(here: str) -> None:
    """Run the sitecustomize that Python would have found; what it raises is the user's."""
    mine = sys.modules.pop("sitecustomize")
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    try:
        import sitecustomize  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", mine)  # site looks for it and would complain


_here = os.path.dirname(os.path.abspath(__file__))
try:
    _install(_here)
except Exception:  # noqa: BLE001, S110 - the program must run as without us
    pass
_step_aside(_here)
