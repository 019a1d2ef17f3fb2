"""How a process was started: KERN_PROCARGS2, its arguments and its environment."""

import ctypes
import errno
import sys
from dataclasses import dataclass, field
from itertools import takewhile

from mpsbar.machine.macos.native import system_error
from mpsbar.machine.platform import MAX_VALUE, parse_command, parse_variables

_CTL_KERN = 1
_KERN_PROCARGS2 = 49
_COUNT_SIZE = 4
# ARG_MAX and the count: asked for more, the kernel refuses.
_MOST = (1 << 20) + _COUNT_SIZE
_SPARE = 64


@dataclass(frozen=True, slots=True)
class Arguments:
    executable: str | None = None
    command: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)


def read_arguments(system: ctypes.CDLL, pid: int) -> Arguments:
    """Raises OSError: EINVAL for another user's process or one that is gone, EIO in an exec."""
    name = (ctypes.c_int * 3)(_CTL_KERN, _KERN_PROCARGS2, pid)
    size = ctypes.c_size_t(0)
    if system.sysctl(name, len(name), None, ctypes.byref(size), None, 0):
        raise system_error(pid)
    buffer = ctypes.create_string_buffer(min(size.value + _SPARE, _MOST))
    size = ctypes.c_size_t(len(buffer))
    if system.sysctl(name, len(name), buffer, ctypes.byref(size), None, 0):
        raise system_error(pid)
    # Into too little room the kernel puts the end of it all, and zeros.
    if size.value >= len(buffer):
        raise OSError(errno.EIO, f"{pid}: has become another program")
    return parse_arguments(buffer.raw[: size.value])


def parse_arguments(data: bytes) -> Arguments:
    """The count, the path, zeros, then as many strings, then the environment up to an empty one.

    Restricted programs come without an environment.
    """
    count = int.from_bytes(data[:_COUNT_SIZE], sys.byteorder, signed=True)
    path, _, rest = data[_COUNT_SIZE:].partition(b"\0")
    *strings, tail = rest.lstrip(b"\0").split(b"\0")
    if tail and len(strings) < count:
        strings.append(tail)
    count = max(0, count)
    return Arguments(
        executable=path[:MAX_VALUE].decode(errors="replace") or None,
        command=parse_command(strings[:count]),
        variables=parse_variables(takewhile(bool, strings[count:])),
    )
