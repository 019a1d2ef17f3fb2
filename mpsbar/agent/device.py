"""Which device, and which dtype on it: the answers a training script asks for.

From what `mpsbar probe` measured in this Python, else from what is known of torch's releases;
torch is the host's own, never imported here.
"""

from typing import Any

from .backends import loaded
from .mps_support import FIRST_RELEASE, dtype_macos, has_dtype
from .results import read_safe

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


def get_device() -> str:
    """cuda, else mps, else cpu: the first that is there."""
    torch = _torch("get_device")
    for name, parent in (("cuda", torch), ("mps", getattr(torch, "backends", None))):
        module = getattr(parent, name, None)  # torch before 1.12 has no torch.backends.mps
        if module is not None and _is_available(module):
            return name
    return "cpu"


def safe_dtype(device: Any = None, wanted: Any = None) -> Any:
    """`wanted` if it works on `device`, else the nearest dtype that does; float32 by default."""
    torch = _torch("safe_dtype")
    dtype = _find_dtype(torch, wanted)
    kind = get_device() if device is None else _device_type(torch, device)
    measured = read_safe(torch, kind)
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
    """A driver that raises is not there to be used."""
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
    """The dtype itself, or its name: "bfloat16", "torch.bfloat16"."""
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
    """Asked of torch: a Python built long ago is told 10.16 by any newer macOS."""
    try:
        return bool(torch.backends.mps.is_macos_or_newer(*version))
    except Exception:  # noqa: BLE001 - not known to work
        return False


def _name(dtype: Any) -> str:
    """complex32, not its other name chalf."""
    return str(dtype).replace("torch.", "", 1)


def _release(torch: Any) -> "tuple[int, int]":
    """(2, 13); what cannot be read counts as the oldest."""
    try:
        major, minor = str(torch.__version__).split(".")[:2]
        return int(major), int(minor)
    except ValueError:
        return FIRST_RELEASE
