"""`mpsbar.get_device()` and `mpsbar.safe_dtype()`: which device, and which dtype works on it.

From what `mpsbar probe` measured in this Python, else from what is known of torch's releases;
torch is the host's own, never imported here.
"""

import json
import os
import stat
import sys
from typing import Any

from . import user_folders
from .backends import loaded
from .mps_support import FIRST_RELEASE, dtype_macos, has_dtype

# The nearest that should work: it holds all values of the other, but for int64, uint64, complex128.
_INSTEAD = {
    "bool": "uint8",
    "uint8": "int32",
    "int8": "int32",
    "int16": "int32",
    "int32": "int64",
    "int64": "int32",
    "complex128": "complex64",
    "complex32": "complex64",
    "uint16": "int32",
    "uint32": "int64",
    "uint64": "int64",
    "float8_e4m3fn": "float16",
    "float8_e4m3fnuz": "float16",
    "float8_e5m2": "float16",
    "float8_e5m2fnuz": "float16",
}
_SAFEST = "float32"
_LARGEST = 1 << 20  # of a file of results
# The results that were read last: a script may ask for every tensor it makes.
_last_results: "dict[tuple[str, int], dict[str, bool]]" = {}


def get_device() -> str:
    """Returns the first that is there of cuda, mps and cpu."""
    torch = _torch("get_device")
    for name, parent in (("cuda", torch), ("mps", getattr(torch, "backends", None))):
        module = getattr(parent, name, None)  # torch before 1.12 has no torch.backends.mps
        if module is not None and _is_available(module):
            return name
    return "cpu"


def safe_dtype(device: Any = None, wanted: Any = None) -> Any:
    """Returns `wanted` if it works on `device`, else the nearest dtype that does; float32 by
    default.
    """
    torch = _torch("safe_dtype")
    dtype = _find_dtype(torch, wanted)
    kind = get_device() if device is None else _device_type(torch, device)
    measured = _read_measured(torch, kind)
    nearest = getattr(torch, _INSTEAD.get(_name(dtype), _SAFEST))
    for candidate in (dtype, nearest):
        if measured.get(_name(candidate), kind != "mps" or _works_on_mps(torch, candidate)):
            return candidate
    return getattr(torch, _SAFEST)


def _torch(asked: str) -> Any:
    torch = loaded("torch")
    if torch is None:
        raise RuntimeError(f"import torch before mpsbar.{asked}()")
    return torch


def _is_available(module: Any) -> bool:
    """Returns whether a device is there to be used; one whose driver raises is not."""
    try:
        return bool(module.is_available())
    except Exception:  # noqa: BLE001 - whatever a broken driver raises
        return False


def _device_type(torch: Any, device: Any) -> str:
    if isinstance(device, torch.device):
        return str(device.type)
    if isinstance(device, str):
        return str(torch.device(device).type)  # "mps:0"; torch itself complains about a typo
    raise TypeError(f"a device or its name is needed, not {device!r}")


def _find_dtype(torch: Any, wanted: Any) -> Any:
    """Returns the dtype itself, also for its name: "bfloat16", "torch.bfloat16"."""
    if wanted is None:
        return getattr(torch, _SAFEST)
    if isinstance(wanted, str):
        wanted = getattr(torch, wanted.replace("torch.", "", 1), wanted)
    if not isinstance(wanted, torch.dtype):
        raise TypeError(f"a torch.dtype or its name is needed, not {wanted!r}")
    return wanted


def _works_on_mps(torch: Any, dtype: Any) -> bool:
    name, release = _name(dtype), _release(torch)
    macos = dtype_macos(name, release)
    return has_dtype(name, release) and (macos is None or _is_macos(torch, macos))


def _is_macos(torch: Any, version: "tuple[int, int]") -> bool:
    """Asks torch: a Python built long ago is told 10.16 by any newer macOS."""
    try:
        return bool(torch.backends.mps.is_macos_or_newer(*version))
    except Exception:  # noqa: BLE001 - not known to work
        return False


def _name(dtype: Any) -> str:
    """Returns its name: complex32, not its other name chalf."""
    return str(dtype).replace("torch.", "", 1)


def _release(torch: Any) -> "tuple[int, int]":
    """Returns (2, 13) for 2.13.1; what cannot be read counts as the oldest."""
    try:
        major, minor = str(torch.__version__).split(".")[:2]
        return int(major), int(minor)
    except ValueError:
        return FIRST_RELEASE


# ------------------------------------------------------ what `mpsbar probe` has measured
def _read_measured(torch: Any, device: str) -> "dict[str, bool]":
    """Returns whether each dtype may be used; empty where `mpsbar probe` has not measured this
    Python, torch and system.
    """
    try:
        return _read_result(str(torch.__version__), device)
    except Exception:  # noqa: BLE001 - no file, another's, cut short: then nothing is known
        return {}


def _read_result(torch: str, device: str) -> "dict[str, bool]":
    folder = user_folders.results_folder()
    if folder is None:
        return {}
    wanted = {
        "device": device,
        "torch": torch,
        "system": user_folders.system_version(),
        "prefix": os.path.realpath(sys.prefix),
        "version": ".".join(map(str, sys.version_info[:3])),
    }
    path = os.path.join(folder, user_folders.result_name(**wanted))
    key = (path, os.stat(path).st_mtime_ns)
    if key not in _last_results:
        user_folders.check(folder)
        _last_results.clear()
        _last_results[key] = _parse_result(path, wanted)
    return _last_results[key]


def _parse_result(path: str, wanted: "dict[str, str]") -> "dict[str, bool]":
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError("it is not a file")  # a pipe would make the host wait
    with open(path, encoding="utf-8") as file:
        record = json.loads(file.read(_LARGEST))
    if any(record.get(name) != value for name, value in wanted.items()):
        return {}
    return {str(name): is_safe is True for name, is_safe in record["safe"].items()}
