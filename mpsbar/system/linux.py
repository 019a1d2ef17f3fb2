"""Linux, from /proc and /sys: for servers, tests and CI; there is no Metal to read here."""

import os
import re
import time
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import IO, Any

from mpsbar.agent.frameworks import FRAMEWORKS
from mpsbar.core.errors import reason_of
from mpsbar.core.machine import Machine, Pressure, Problem
from mpsbar.system.platform import (
    Details,
    ExitWatch,
    Footprint,
    GpuClient,
    NoExitWatch,
    ReportReader,
    framework_of,
    parse_command,
    parse_variables,
)

# More than the longest list of mappings, arguments or environment worth reading. A process can make
# the latter two as long as its memory; psutil would read them whole.
_MAX_MAPS = 8 << 20
_MAX_STRINGS = 1 << 20
_CHUNK = 1 << 13
_MAX_STATM = 24  # files that stay open
_PAGE = os.sysconf("SC_PAGE_SIZE")
# Also when no process seems to have started: not every kernel reports the last pid.
_LIST_SECONDS = 30.0
_SUPPLIES = ("Mains", "USB", "Wireless")
_LIBRARIES = [library for framework in FRAMEWORKS for library in framework.libraries]
# Shorter names find the longer ones too.
_HINTS = [
    f"/{library}".encode()
    for library in _LIBRARIES
    if not any(library.startswith(other) for other in _LIBRARIES if other != library)
]
# address perms offset dev inode path; only code counts: a linker reads libtorch too.
_EXECUTABLE = re.compile(rb"\S+ ..x. \S+ \S+ \d+ +(/.*)")
_MEMORY = re.compile(rb"(?m)^(MemTotal|MemAvailable|SwapTotal|SwapFree):\s+(\d+) kB$")
_MEMORY_LINES = 4
_CHARGED = re.compile(rb"(?m)^(VmHWM|VmRSS):\s+(\d+) kB$")
_PRESSURE = re.compile(rb"(?m)^(some|full) avg10=(\d{1,9}(?:\.\d{1,9})?)")
# Percent of the last 10 s in which something (some) or everything (full) waited for memory.
# systemd-oomd acts at 60% "full"; people notice far less.
_SOME_WARNING = 10.0
_FULL_CRITICAL = 10.0


class LinuxComputer:
    is_mac = False
    recorded_workers: list[dict[str, Any]] | None = None

    def __init__(self, root: str = "/") -> None:
        self._root = Path(root)
        self._proc = f"{root.rstrip('/')}/proc"
        self._fixed: Machine | None = None
        self._boot: float | None = None
        self._last_pid = b""
        self._list_at = 0.0
        self._pressure: Pressure | None = None
        self._open_files: dict[str, IO[bytes]] = {}  # read at every scan
        self._statm: dict[int, IO[bytes]] = {}  # the same, by pid
        self._supplies: list[str] | None = None
        self._failures: dict[str, str] = {}  # why one of these could not be read
        self.problems: tuple[Problem, ...] = ()

    def read_machine(self) -> Machine:
        if self._fixed is None:
            self._fixed = self._read_fixed()
        fixed = self._fixed
        self._pressure = parse_pressure(self._read_open("pressure/memory"), self._pressure)
        meminfo = parse_kilobytes(self._read_open("meminfo"), _MEMORY)
        total, free = meminfo.get(b"SwapTotal"), meminfo.get(b"SwapFree")
        self.problems = (
            *([] if len(meminfo) == _MEMORY_LINES else [self._explain("meminfo")]),
            *([] if self._pressure is not None else [self._explain("pressure/memory")]),
        )
        return Machine(
            os=fixed.os, os_version=fixed.os_version, model=fixed.model, chip=fixed.chip,
            cores=fixed.cores, is_virtual=fixed.is_virtual,
            memory_total=meminfo.get(b"MemTotal"),
            memory_available=meminfo.get(b"MemAvailable"),
            swap_used=None if total is None or free is None else total - free,
            pressure=self._pressure,
            on_battery=self._read_battery(),
        )  # fmt: skip

    def list_processes(self) -> dict[int, Hashable] | None:
        """The token is the inode of /proc/PID: the kernel makes a new one for each process.

        The last number of /proc/loadavg is the pid given out last.
        """
        last = self._read_open("loadavg").rpartition(b" ")[2]
        now = time.monotonic()
        if last and last == self._last_pid and now < self._list_at:
            return None
        with os.scandir(self._proc) as entries:
            pids: dict[int, Hashable] = {
                int(entry.name): entry.inode() for entry in entries if entry.name.isdigit()
            }
        self._last_pid, self._list_at = last, now + _LIST_SECONDS
        self._statm = {pid: file for pid, file in self._statm.items() if pid in pids}
        return pids

    def read_libraries(self, pid: int) -> dict[str, str]:
        if os.stat(f"{self._proc}/{pid}").st_uid != os.geteuid():  # noqa: PTH116 - half the cost
            raise PermissionError(pid)
        return parse_maps(self._read(pid, "maps", _MAX_MAPS))

    def read_size(self, pid: int) -> int | None:
        """The size of its address space, in pages."""
        return int(self._read_short(pid, "statm").partition(b" ")[0])

    def read_start(self, pid: int) -> float:
        return self._since_epoch(parse_stat(self._read_short(pid, "stat"))[1])

    def read_details(self, pid: int) -> Details:
        parent, ticks = parse_stat(self._read_short(pid, "stat"))
        arguments = self._read(pid, "cmdline", _MAX_STRINGS).rstrip(b"\0")
        return Details(
            started=self._since_epoch(ticks),
            parent=parent,
            command=parse_command(arguments.split(b"\0") if arguments else ()),
            executable=self._read_executable(pid),
            variables=parse_variables(self._read(pid, "environ", _MAX_STRINGS).split(b"\0")),
        )

    def read_footprint(self, pid: int, with_peak: bool = True) -> Footprint:
        """Reads the resident memory, from statm if no peak is wanted: a quarter of the work."""
        if not with_peak:
            size, resident = self._read_statm(pid).split(b" ", 2)[:2]
            if size == b"0":
                self._statm.pop(pid, None)
                raise ProcessLookupError(f"{pid} has ended")
            return Footprint(int(resident) * _PAGE, None)
        status = parse_kilobytes(self._read_short(pid, "status"), _CHARGED)
        if b"VmRSS" not in status:
            raise ProcessLookupError(f"{pid} has ended")  # a zombie has no memory
        return Footprint(status[b"VmRSS"], status.get(b"VmHWM"))

    def wait_for_slow(self, seconds: float) -> None:  # noqa: ARG002 - nothing is slow here
        return

    def read_gpu_clients(self) -> dict[int, GpuClient] | None:
        return None

    def watch_exits(self) -> ExitWatch:
        from mpsbar.system.linux_exits import PidfdWatch  # a single reading needs none

        try:
            return PidfdWatch(self.read_start)
        except OSError:  # before Linux 5.3, or in a sandbox
            return NoExitWatch()

    def read_reports(self) -> ReportReader:
        from mpsbar.system.linux_reports import LinuxReports

        return LinuxReports(str(self._root))

    def read_exit_reason(self, pid: int) -> tuple[int, int] | None:  # noqa: ARG002 - macOS only
        return None

    def read_boot(self) -> float | None:
        return self._since_epoch(0) or None

    def _read_open(self, name: str) -> bytes:
        """Reads a file of one page that stays open; empty if it cannot be read."""
        try:
            if name not in self._open_files:
                self._open_files[name] = open(f"{self._proc}/{name}", "rb", buffering=0)  # noqa: SIM115, PTH123
            text = os.pread(self._open_files[name].fileno(), _CHUNK, 0)
        except OSError as error:
            self._failures[name] = reason_of(error)
            return b""
        self._failures.pop(name, None)
        return text

    def _read_statm(self, pid: int) -> bytes:
        """Reads statm from a file that stays open, at a fifth of the cost."""
        file = self._statm.get(pid)
        if file is None:
            if len(self._statm) >= _MAX_STATM:
                return self._read_short(pid, "statm")
            file = self._statm[pid] = open(f"{self._proc}/{pid}/statm", "rb", buffering=0)  # noqa: SIM115, PTH123
        try:
            return os.pread(file.fileno(), _CHUNK, 0)
        except ProcessLookupError:  # it has ended; another process may have its pid by now
            self._statm.pop(pid, None)
            return self._read_short(pid, "statm")

    def _explain(self, name: str) -> Problem:
        return Problem("machine", f"/proc/{name}: {self._failures.get(name, 'not understood')}")

    def _read_short(self, pid: int, name: str) -> bytes:
        """Reads a file of one page."""
        file = os.open(f"{self._proc}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(file, _CHUNK)
        finally:
            os.close(file)

    def _read(self, pid: int, name: str, most: int) -> bytes:
        """Reads a file of a process, unbuffered: /proc gives a page at a time anyway."""
        file = os.open(f"{self._proc}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = [os.read(file, _CHUNK)]
            while parts[-1] and len(parts) * 4096 < most:
                parts.append(os.read(file, _CHUNK))
        finally:
            os.close(file)
        return b"".join(parts)

    def _read_executable(self, pid: int) -> str | None:
        """Returns None for a process in a container too: its paths mean nothing here."""
        try:
            own, other = (os.readlink(f"{self._proc}/{who}/ns/mnt") for who in ("self", pid))  # noqa: PTH115
            if own != other:
                return None
            return os.readlink(f"{self._proc}/{pid}/exe").removesuffix(" (deleted)")  # noqa: PTH115 - it is text
        except OSError:
            return None

    def _since_epoch(self, ticks: int) -> float:
        if self._boot is None:
            match = re.search(r"^btime (\d+)$", self._text("proc/stat"), re.MULTILINE)
            self._boot = float(match[1]) if match else 0.0
        return self._boot + ticks / os.sysconf("SC_CLK_TCK")

    def _read_fixed(self) -> Machine:
        uname = os.uname()
        cpu = self._text("proc/cpuinfo")
        chip = re.search(r"^model name\s*: (.+)$", cpu, re.MULTILINE)
        system = re.search(r'^PRETTY_NAME="?([^"\n]*)', self._text("etc/os-release"), re.MULTILINE)
        model = self._text("sys/class/dmi/id/product_name") or self._text("proc/device-tree/model")
        return Machine(
            os=system[1] if system else f"{uname.sysname} {uname.release}",
            model=model.strip("\0\n ") or None,
            chip=chip[1] if chip else None,
            cores=os.cpu_count(),
            is_virtual=True
            if re.search(r"^flags\s*:.*\bhypervisor\b", cpu, re.MULTILINE)
            else None,
        )

    def _read_battery(self) -> bool | None:
        """Returns whether no power supply is online; None where none is known.

        psutil would take a wireless mouse's battery (hidpp_battery_0) for the computer's.
        """
        if self._supplies is None:
            folder = self._root / "sys/class/power_supply"
            self._supplies = [
                f"sys/class/power_supply/{path.name}"
                for path in (folder.iterdir() if folder.is_dir() else ())
                if self._text(f"sys/class/power_supply/{path.name}/type").strip() in _SUPPLIES
            ]
        online = [self._text(f"{supply}/online").strip() for supply in self._supplies]
        return "1" not in online if online else None

    def _text(self, path: str) -> str:
        try:
            return (self._root / path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


def parse_maps(maps: bytes) -> dict[str, str]:
    """The frameworks whose code is loaded, from /proc/PID/maps."""
    libraries: dict[str, str] = {}
    for hint in _HINTS:
        for line in _lines_with(hint, maps):
            match = _EXECUTABLE.fullmatch(line)
            path = os.fsdecode(match[1]) if match else ""
            if framework := framework_of(path):
                libraries.setdefault(framework, path)
                break
    return libraries


def _lines_with(hint: bytes, text: bytes) -> Iterator[bytes]:
    """The few of hundreds of lines that contain `hint`."""
    at = text.find(hint)
    while at >= 0:
        start, end = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at)
        end = len(text) if end < 0 else end
        yield text[start:end]
        at = text.find(hint, end)


def parse_stat(stat: bytes) -> tuple[int, int]:
    """The parent's pid and the start in ticks since boot, from /proc/PID/stat.

    The name in parentheses may hold anything, parentheses and spaces too.
    """
    fields = stat.rpartition(b")")[2].split()
    try:
        return int(fields[1]), int(fields[19])
    except (IndexError, ValueError):
        raise ProcessLookupError(f"no such line: {stat[:80]!r}") from None


def parse_kilobytes(text: bytes, wanted: re.Pattern[bytes]) -> dict[bytes, int]:
    """The wanted lines of /proc/meminfo or /proc/PID/status, in bytes."""
    return {name: int(number) << 10 for name, number in wanted.findall(text)}


def parse_pressure(text: bytes, before: Pressure | None = None) -> Pressure | None:
    """The level from /proc/pressure/memory; None without PSI. It falls below half its limit."""
    levels = {kind: float(value) for kind, value in _PRESSURE.findall(text)}
    if b"some" not in levels:
        return None
    full, some = levels.get(b"full", 0.0), levels[b"some"]
    if full >= (_FULL_CRITICAL / 2 if before == "critical" else _FULL_CRITICAL):
        return "critical"
    is_on = before in ("warning", "critical")
    return "warning" if some >= (_SOME_WARNING / 2 if is_on else _SOME_WARNING) else "normal"
