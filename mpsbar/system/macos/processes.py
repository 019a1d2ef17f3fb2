"""Other processes: libproc says what changes, psutil how each was started.

psutil is asked once for each process, not at every tick: its C functions keep Python's lock while
the kernel answers, so a call that hangs would stop every thread.
"""

import ctypes
import os
import struct
from collections.abc import Callable
from typing import TypeVar

import psutil

from mpsbar.agent.frameworks import FRAMEWORKS
from mpsbar.system.macos.native import system_error
from mpsbar.system.platform import (
    MAX_VALUE,
    Details,
    Footprint,
    framework_of,
    parse_command,
    parse_variables,
)

T = TypeVar("T")

# From bsd/sys/proc_info.h and proc_info_private.h, the same on macOS 13 to 15.
UID_ONLY = 4
BSDINFO_FLAVOR = 3
BSDINFO = struct.Struct("=4xI112xQQ")  # status, start in seconds and microseconds
ZOMBIE = 5
BSDINFO_FLAGS = struct.Struct("=I132x")  # the same struct
SUPPRESSED = 0x800000  # by App Nap
TASKINFO_FLAVOR = 4
TASKINFO = struct.Struct("=Q88x")  # virtual size
# Of all mappings only those of files, and without the page walk of flavor 8.
REGION_FLAVOR = 22
REGION = struct.Struct("=I76xQQ152x1024s")  # protection, address, size, path
EXECUTE = 4
# bsd/sys/resource.h; the version that has the peak and is in every macOS we run on.
RUSAGE_FLAVOR = 4
EXIT_REASON_FLAVOR = 25
EXIT_REASON = struct.Struct("=IQ8x4x")  # namespace, code; then flags and the size of the payload
RUSAGE = struct.Struct("=72xQ160xQ48x")  # phys_footprint, lifetime_max_phys_footprint

# torch and its kin map some hundreds of files; weights mapped one by one make thousands.
MAX_REGIONS = 20_000
_MAX_PIDS = 100_000
_TRIES = 5
# What psutil raises where it has no answer: AccessDenied also while a program is in an exec. The
# others come where its C code meets a sysctl that failed without an error number (psutil #2854,
# fixed after 7.2).
_NO_ANSWER = (psutil.AccessDenied, OSError, SystemError, RuntimeError)


def list_pids(system: ctypes.CDLL, uid: int) -> list[int]:
    """The pids of one user. The list is read again while it fills the whole buffer."""
    pids: list[int] = []
    for _ in range(_TRIES):
        size = system.proc_listpids(UID_ONLY, uid, None, 0)  # for all processes, and some more
        buffer = (ctypes.c_int * min(size // 2 + 1, _MAX_PIDS))()  # twice as many
        size = system.proc_listpids(UID_ONLY, uid, buffer, ctypes.sizeof(buffer))
        if size <= 0:
            raise system_error("proc_listpids")
        pids = [pid for pid in buffer[: size // ctypes.sizeof(ctypes.c_int)] if pid > 0]
        if size < ctypes.sizeof(buffer):
            break
    return pids


def read_tokens(system: ctypes.CDLL, pids: list[int]) -> dict[int, tuple[int, int]]:
    """When each was started; without those that have ended, zombies and other users' processes."""
    buffer = ctypes.create_string_buffer(BSDINFO.size)
    tokens = {}
    for pid in pids:
        size = system.proc_pidinfo(pid, BSDINFO_FLAVOR, 0, buffer, BSDINFO.size)
        if size == BSDINFO.size:
            status, seconds, microseconds = BSDINFO.unpack(buffer)
            if status != ZOMBIE:
                tokens[pid] = seconds, microseconds
    return tokens


def read_start(system: ctypes.CDLL, pid: int) -> float:
    """Seconds since the epoch. psutil's create_time moves when the clock is set, this does not."""
    buffer = ctypes.create_string_buffer(BSDINFO.size)
    if system.proc_pidinfo(pid, BSDINFO_FLAVOR, 0, buffer, BSDINFO.size) != BSDINFO.size:
        raise system_error(pid)
    status, seconds, microseconds = BSDINFO.unpack(buffer)
    if status == ZOMBIE:
        raise ProcessLookupError(f"{pid} has ended")
    return float(seconds + microseconds / 1e6)


def read_size(system: ctypes.CDLL, pid: int) -> int:
    """The size of its address space: loading a library changes it."""
    buffer = ctypes.create_string_buffer(TASKINFO.size)
    if system.proc_pidinfo(pid, TASKINFO_FLAVOR, 0, buffer, TASKINFO.size) != TASKINFO.size:
        raise system_error(pid)
    return int(TASKINFO.unpack(buffer)[0])


def read_libraries(system: ctypes.CDLL, pid: int) -> dict[str, str]:
    """The frameworks whose code is mapped: a linker or grep reads libtorch too.

    The kernel grants execution as a maximum to every mapped file, so what counts is the present
    protection.
    """
    libraries: dict[str, str] = {}
    address = 0
    buffer = ctypes.create_string_buffer(REGION.size)
    for _ in range(MAX_REGIONS):
        if not _read_region(system, pid, address, buffer):
            break
        protection, start, size, path = REGION.unpack(buffer)
        if protection & EXECUTE:
            name = path.split(b"\0", 1)[0].decode(errors="replace")
            if framework := framework_of(name):
                libraries.setdefault(framework, name)
        if start + size <= address or len(libraries) == len(FRAMEWORKS):
            break
        address = start + size
    return libraries


def read_footprint(system: ctypes.CDLL, pid: int) -> Footprint:
    buffer = ctypes.create_string_buffer(RUSAGE.size)
    if system.proc_pid_rusage(pid, RUSAGE_FLAVOR, buffer):
        raise system_error(pid)
    now, peak = RUSAGE.unpack(buffer)
    return Footprint(now, peak, _is_napping(system, pid))


def _is_napping(system: ctypes.CDLL, pid: int) -> bool | None:
    """Returns whether macOS slows it down because nobody sees its windows; None: not known."""
    buffer = ctypes.create_string_buffer(BSDINFO_FLAGS.size)
    size = system.proc_pidinfo(pid, BSDINFO_FLAVOR, 0, buffer, BSDINFO_FLAGS.size)
    return bool(BSDINFO_FLAGS.unpack(buffer)[0] & SUPPRESSED) if size == len(buffer) else None


def read_exit_reason(system: ctypes.CDLL, pid: int) -> tuple[int, int] | None:
    """Namespace and code of a child's exit reason; only its parent may ask, before it waits."""
    buffer = ctypes.create_string_buffer(EXIT_REASON.size)
    size = system.proc_pidinfo(pid, EXIT_REASON_FLAVOR, 0, buffer, EXIT_REASON.size)
    if size != EXIT_REASON.size:
        return None
    namespace, code = EXIT_REASON.unpack(buffer)
    return (int(namespace), int(code)) if namespace else None


def _read_region(
    system: ctypes.CDLL, pid: int, address: int, buffer: "ctypes.Array[ctypes.c_char]"
) -> bool:
    """The next mapping of a file at or after an address; False when there is none."""
    ctypes.set_errno(0)
    if system.proc_pidinfo(pid, REGION_FLAVOR, address, buffer, REGION.size) == REGION.size:
        return True
    error = system_error(pid)
    if isinstance(error, (ProcessLookupError, PermissionError)):
        raise error
    return False


def read_details(pid: int, started: float) -> Details:
    """Raises ProcessLookupError; whatever else cannot be read is left out.

    It is called after `read_libraries` has read the same address space without Python's lock.
    """
    try:
        process = psutil.Process(pid)
        arguments = _ask(process.cmdline) or []
        variables = _ask(process.environ) or {}
        executable = _ask(process.exe) or ""
        parent = _ask(process.ppid)
    except psutil.NoSuchProcess:  # a zombie too
        raise ProcessLookupError(f"{pid} has ended") from None
    # psutil has no limits but the kernel's, which is 1 MB for both together.
    return Details(
        started=started,
        parent=parent,
        command=parse_command(map(os.fsencode, arguments)),
        executable=os.fsencode(executable)[:MAX_VALUE].decode(errors="replace") or None,
        variables=parse_variables(os.fsencode(f"{k}={v}") for k, v in variables.items()),
    )


def _ask(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except _NO_ANSWER:
        return None
