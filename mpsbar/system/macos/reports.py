"""Looks for what macOS wrote about the end of a process, in both DiagnosticReports folders.

Only after an end. The system's folder is for admins: what may not be read is said.
"""

import os
import pwd
from itertools import islice
from pathlib import Path

from mpsbar.core.endings import GpuEvent, Panic, SystemReports, Unreadable
from mpsbar.core.machine import SAME_START
from mpsbar.system.files import read_bytes
from mpsbar.system.macos import report_files
from mpsbar.system.macos.report_files import CRASH, GPU_EVENT, JETSAM, ReportName
from mpsbar.system.platform import EndedPid

SYSTEM_FOLDER = Path("/Library/Logs/DiagnosticReports")
# Crash reports have 20 to 180 kB; a jetsam event with 3000 rows is over a megabyte.
_LARGEST = 4 << 20
_MAX_NAMES = 20_000
_MAX_READ = 40  # files for one end
# A report's name has the second of the crash or the next; clocks and a busy disk add to that.
_BEFORE, _AFTER = 5.0, 120.0
# A GPU event has no pid: only one of the same seconds may have to do with an end.
_SAME_EVENT = 5.0
_PANIC_AFTER = 7 * 86400.0


class MacReports:
    def __init__(self, home: Path | None = None, system: Path = SYSTEM_FOLDER) -> None:
        # Not $HOME: it may be anything.
        home = home or Path(pwd.getpwuid(os.geteuid()).pw_dir)
        self._folders: tuple[tuple[Unreadable, Path], ...] = (
            ("user_reports", home / "Library/Logs/DiagnosticReports"),
            ("system_reports", system),
        )

    def note(self, pid: int) -> None:
        """Does nothing: all that macOS writes about an end is still there afterwards."""

    def refresh(self) -> None:
        """Does nothing: reports are read only after an end."""

    def read(self, end: EndedPid) -> SystemReports:
        names, unreadable = self._list()
        crash = jetsam = None
        events: list[GpuEvent] = []
        since = end.earliest - _BEFORE
        wanted = [(n, p) for n, p in names if since <= n.local_time <= end.latest + _AFTER]
        wanted.sort(key=lambda item: item[0].local_time)
        for name, path in wanted[:_MAX_READ]:
            if name.kind != "ips":
                continue
            text = _read(path)
            if text is None:
                continue
            kind = report_files.find_type(text)
            if name.process.startswith("gpuEvent") or kind == GPU_EVENT:
                event = report_files.parse_gpu_event(text, name.local_time)
                events += [event] if event is not None else []
            elif kind == JETSAM or name.process.startswith("JetsamEvent"):
                jetsam = jetsam or report_files.find_jetsam(text, end.pid)
            elif crash is None and kind in (CRASH, ""):
                other = report_files.parse_crash(text)
                if other is not None and other.pid == end.pid and _is_same(end, other.launched):
                    crash = other.report
        panic = self._find_panic(names, end) if end.restarted else None
        near = [e for e in events if -_SAME_EVENT <= e.time - end.latest <= _SAME_EVENT]
        return SystemReports(
            crash, jetsam, near[0] if near and end.is_exact else None, panic,
            unreadable=unreadable,
        )  # fmt: skip

    def _find_panic(self, names: list[tuple[ReportName, Path]], end: EndedPid) -> Panic | None:
        """Finds the first panic after the process was last seen; it is written at the next boot."""
        panics = [
            (n, p) for n, p in names
            if (n.kind == "panic" or n.process.startswith("panic"))
            and end.earliest - _BEFORE <= n.local_time <= end.latest + _PANIC_AFTER
        ]  # fmt: skip
        for _name, path in sorted(panics, key=lambda item: item[0].local_time)[:4]:
            text = _read(path)
            panic = report_files.parse_panic(text) if text else None
            if panic is not None:
                return panic
        return None

    def _list(self) -> tuple[list[tuple[ReportName, Path]], tuple[Unreadable, ...]]:
        reports: list[tuple[ReportName, Path]] = []
        unreadable: list[Unreadable] = []
        for which, folder in self._folders:
            for place in (folder, folder / "Retired"):
                try:
                    reports += _list_folder(place)
                except (FileNotFoundError, NotADirectoryError):
                    continue
                except OSError:
                    unreadable.append(which)
        return reports, tuple(dict.fromkeys(unreadable))


def _list_folder(folder: Path) -> list[tuple[ReportName, Path]]:
    with os.scandir(folder) as entries:
        names = [(report_files.parse_name(e.name), e.path) for e in islice(entries, _MAX_NAMES)]
    return [(name, Path(path)) for name, path in names if name is not None]


def _is_same(end: EndedPid, launched: float | None) -> bool:
    """Returns whether a report is about this process: pids are used again, so its start decides.

    A cut report may lack it; then the pid has to do.
    """
    if end.started is None or launched is None:
        return end.is_exact
    return abs(launched - end.started) <= SAME_START


def _read(path: Path) -> str | None:
    try:
        return read_bytes(path, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return None
