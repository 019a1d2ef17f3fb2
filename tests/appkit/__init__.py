"""A double of what rumps and mpsbar use of AppKit, for Linux: see README.md."""

import importlib.util
import sys
import tempfile
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from appkit import session
from appkit.index import parse_version
from appkit.mac import Mac, NotClickableError
from appkit.modules import build_modules
from appkit.session import Aborted, Hangs, OffMainThreadError, Terminated

__all__ = [
    "Aborted",
    "Hangs",
    "Mac",
    "NotClickableError",
    "OffMainThreadError",
    "Terminated",
    "installed",
    "why_no_rumps",
]

# Bound to the classes of one session when they are imported: forgotten with it.
_BOUND = ("rumps", "PyObjCTools")


def why_no_rumps() -> str | None:
    """One sentence why the real rumps cannot run here, or None; good for a skip."""
    if importlib.util.find_spec("rumps") is None:
        return "rumps is not installed: make setup"
    if importlib.util.find_spec("PyObjCTools") is None:
        return "PyObjC's AppHelper is not installed: make setup"
    if importlib.util.find_spec("PyObjCTools.AppHelper") is None:
        return "PyObjC's AppHelper is not installed: make setup"
    return None


@contextmanager
def installed(
    *,
    home: Path | None = None,
    macos: str = "27.0",
    bundle: str | None = None,
    forget: tuple[str, ...] = (),
) -> Iterator[Mac]:
    """A fresh Mac in sys.modules; `forget` names the packages that import AppKit, to load anew."""
    with tempfile.TemporaryDirectory() as spare:
        place = home or Path(spare)
        (place / "Library/Application Support").mkdir(parents=True, exist_ok=True)
        state = session.Session(place, parse_version(macos), bundle)
        session.begin(state)
        kept = _replace(build_modules(), _BOUND + forget)
        try:
            yield Mac(state)
        finally:
            _restore(kept, _BOUND + forget)
            session.end()
    if state.faults:
        raise AssertionError(f"against Apple's rules: {state.faults}") from state.faults[0]


def _forget_in_parent(name: str) -> None:
    """`package.module` leads to a forgotten module, and monkeypatch.setattr with its name too."""
    package, _, module = name.rpartition(".")
    if package in sys.modules:
        vars(sys.modules[package]).pop(module, None)


def _replace(
    modules: dict[str, types.ModuleType], bound: tuple[str, ...]
) -> dict[str, types.ModuleType]:
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_of(name, bound)}
    for name in kept:
        _forget_in_parent(name)
    kept |= {name: sys.modules[name] for name in modules if name in sys.modules}
    sys.modules.update(modules)
    return kept


def _restore(kept: dict[str, types.ModuleType], bound: tuple[str, ...]) -> None:
    doubles = ("objc", "AppKit", "Foundation", "Metal", "ServiceManagement", "UserNotifications")
    for name in list(sys.modules):
        if _is_of(name, bound + doubles):
            del sys.modules[name]
            _forget_in_parent(name)
    sys.modules.update(kept)
    for name, module in kept.items():
        package, _, child = name.rpartition(".")
        if package in sys.modules:
            setattr(sys.modules[package], child, module)


def _is_of(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)
