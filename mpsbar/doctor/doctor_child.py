"""The child process of the doctor: reports what torch can do in the Python that runs it.

A script of its own for any Python (3.8 and newer): it imports nothing of mpsbar but child_answers,
which starts it, and writes one marked JSON line for each stage, so that a crash or a hang leaves
the answers before it.
"""

from __future__ import annotations

import os
import platform
import sys
from typing import Any, Callable  # noqa: UP035 - collections.abc.Callable[…] needs 3.9

from mpsbar.system.child_answers import (
    describe,
    find_torch,
    get_nested,
    import_torch,
    lower_priority,
    read_claimed_dtypes,
    send,
)

MARK = "\x1empsbar "
# SIGALRM ends us if torch hangs and the process that started us was killed.
_LAST_RESORT_SECONDS = 600
_LONGEST_TEXT = 1000
_MAX_SETTINGS = 40


def main() -> None:
    preloaded = "torch" in sys.modules
    lower_priority(_LAST_RESORT_SECONDS)
    _report("python", _read_python)
    has_torch = _report("torch", lambda: dict(_find_torch(), preloaded=preloaded)).get("found")
    if has_torch and _report("import", _import_torch).get("version"):
        _inspect_torch()
    _report("end", dict)


def _inspect_torch() -> None:
    import torch

    _report("built", lambda: {"mps": bool(_call(torch, "backends.mps.is_built", False))})
    available = _report("available", lambda: _read_available(torch))
    device = next((name for name in ("cuda", "mps") if available.get(name)), "cpu")
    _report("chosen", lambda: {"device": device})
    _report("computed", lambda: {"sum": _compute(torch, device)})
    _report("capability", lambda: {"dtypes": read_claimed_dtypes(torch)})


def _report(stage: str, read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Write one line, also if `read` fails."""
    try:
        answer = read()
    except BaseException as error:  # noqa: BLE001 - a SystemExit is an answer, too
        answer = {"error": describe(error, _LONGEST_TEXT)}
    send(1, MARK, stage, answer)
    return answer


def _read_python() -> dict[str, Any]:
    is_mac = sys.platform == "darwin"
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "architecture": platform.machine(),
        "system": sys.platform,
        "prefix": sys.prefix,
        "os_version": platform.mac_ver()[0] if is_mac else None,
        "translated": _is_translated() if is_mac else None,
        "settings": _read_settings(),
    }


def _read_settings() -> dict[str, str]:
    names = sorted(name for name in os.environ if name.startswith("PYTORCH_"))
    return {name: os.environ[name][:_LONGEST_TEXT] for name in names[:_MAX_SETTINGS]}


def _is_translated() -> bool | None:
    """Returns whether Rosetta runs us; a Mac without it answers ENOENT."""
    try:
        import ctypes
        import errno

        library = ctypes.CDLL(None, use_errno=True)
        value, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
        name = b"sysctl.proc_translated"
        failed = library.sysctlbyname(
            name, ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)
        )
        if not failed:
            return value.value == 1
        return False if ctypes.get_errno() == errno.ENOENT else None
    except Exception:  # noqa: BLE001 - a Python without ctypes can still report the rest
        return None


def _find_torch() -> dict[str, Any]:
    """Finds the file and version of torch without importing it."""
    files = find_torch()
    return dict(files, version=_read_packaged_version()) if files["found"] else files


def _read_packaged_version() -> str | None:
    try:
        from importlib.metadata import version

        return version("torch")
    except Exception:  # noqa: BLE001 - built from source, or its metadata is damaged
        return None


def _import_torch() -> dict[str, Any]:
    loaded = import_torch()
    import torch

    cuda, hip = get_nested(torch, "version.cuda"), get_nested(torch, "version.hip")
    return dict(loaded, cuda=_text(cuda), hip=_text(hip))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _read_available(torch: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for name, place in (("mps", "backends.mps.is_available"), ("cuda", "cuda.is_available")):
        try:
            answer[name] = bool(_call(torch, place, False))
        except Exception as error:  # noqa: BLE001 - the other backend may still work
            answer[name], answer[name + "_error"] = None, describe(error, _LONGEST_TEXT)
    return answer


def _compute(torch: Any, device: str) -> float:
    """Reads back a small computation: a wrong result shows as well as an exception."""
    ones = torch.ones(2, 2, device=device)
    return float((ones @ ones).sum().item())


def _call(module: Any, path: str, default: Any) -> Any:
    """Call the function at `path`; return `default` where this torch has none."""
    function = get_nested(module, path)
    return default if function is None else function()


if __name__ == "__main__":
    main()
    os._exit(0)  # all answers are sent; a crash of torch at exit does not matter
