"""Builds the report from what is known now and what was recorded, and writes its file."""

import time
from collections.abc import Sequence
from pathlib import Path

from mpsbar import __version__
from mpsbar.core.events import EndedProcess
from mpsbar.core.host_readings import HostReading
from mpsbar.core.snapshot import Snapshot
from mpsbar.doctor.diagnostics import read_versions, render_diagnostics
from mpsbar.doctor.rules import DoctorReport
from mpsbar.dtypes.deep_files import find_deep_result
from mpsbar.dtypes.results import find_result
from mpsbar.dtypes.summary import render_brief
from mpsbar.history.period import Period
from mpsbar.history.reader import find_problem, read_period, read_start
from mpsbar.history.report.hosts_page import Ends, render_hosts_report
from mpsbar.history.report.page import Report, render_report
from mpsbar.history.retention import KEEP, KEEP_FULL
from mpsbar.system import paths
from mpsbar.system.files import replace_file, replace_own_file
from mpsbar.system.native_operations import read_native_operations

# Seconds that the two charts of a process show: every reading, and all that is kept.
_RECENT, _ALL = KEEP_FULL / 1000, KEEP / 1000
# Points of a chart: for the last hour one each 15 s; for all that is kept always the same number.
_POINTS_RECENT, _POINTS_ALL = 240, 336


def write_report(
    snapshot: Snapshot,
    doctor_report: DoctorReport | None,
    file: Path | None = None,
    ends: Sequence[EndedProcess] = (),
) -> Path:
    """Write the report; `ends` newest first. OSError: it could not be written."""
    return _write(make_report(snapshot, doctor_report, ends), file)


def write_hosts_report(readings: Sequence[HostReading], ends: Ends, file: Path) -> Path:
    """Write the report of several hosts. OSError: it could not be written."""
    native = read_native_operations()
    page = render_hosts_report(__version__, readings, ends, native, time.time(), *_read_style())
    return _write(page, file)


def _write(text: str, file: Path | None) -> Path:
    page = text.encode("utf-8", "replace")
    if file is None or file == paths.report_file():
        replace_own_file(paths.report_file(), page)  # it is opened next, in a browser
        return paths.report_file()
    replace_file(file, page)
    return file


def make_report(
    snapshot: Snapshot, doctor_report: DoctorReport | None, ends: Sequence[EndedProcess] = ()
) -> str:
    home = str(Path.home())
    probe = find_result(snapshot)
    diagnostics = render_diagnostics(
        read_versions(), snapshot, doctor_report, home, render_brief(probe)
    )
    periods = _read_periods(time.time())
    report = Report(
        __version__, snapshot, periods, probe, find_deep_result(), home, diagnostics,
        tuple(ends), read_native_operations() if ends else None,
        find_problem() if all(period.is_empty for period in periods) else None,
    )  # fmt: skip
    return render_report(report, *_read_style())


def _read_style() -> tuple[str, str]:
    """Reads the style and the script of the page."""
    css, script = (
        paths.resource(name).read_text(encoding="utf-8") for name in ("report.css", "report.js")
    )
    return css, script


def _read_periods(now: float) -> tuple[Period, ...]:
    """Reads the last hour and, if more was recorded, all of it."""
    start = read_start()
    if start is None:
        return ()
    periods = [read_period(max(start, now - _RECENT), now, _POINTS_RECENT)]
    if start < now - _RECENT - 600:
        periods.append(read_period(max(start, now - _ALL), now, _POINTS_ALL))
    return tuple(periods)
