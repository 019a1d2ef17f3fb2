"""The report put together: what is known now, what was recorded, and the page it becomes."""

import time
from pathlib import Path

from mpsbar import __version__
from mpsbar.core.snapshot import Snapshot
from mpsbar.doctor.checkup import Checkup
from mpsbar.doctor.diagnostics import read_versions, render_diagnostics
from mpsbar.dtypes.results import find_result
from mpsbar.dtypes.summary import render_brief
from mpsbar.history.reader import read_span, read_start
from mpsbar.history.records import Period
from mpsbar.history.report.content import Report
from mpsbar.history.report.page import render_report
from mpsbar.history.retention import KEEP, KEEP_FULL
from mpsbar.system import paths
from mpsbar.system.files import replace_file, replace_own_file

# Seconds that the two charts of a process show: all in full, and all that is kept.
_RECENT, _ALL = KEEP_FULL / 1000, KEEP / 1000
# Points in a course: of an hour one each 15 s, of a week one each half hour.
_POINTS_RECENT, _POINTS_ALL = 240, 336


def write_report(snapshot: Snapshot, checkup: Checkup | None, file: Path | None = None) -> Path:
    """OSError: it could not be written."""
    page = make_report(snapshot, checkup).encode("utf-8", "replace")
    if file is None or file == paths.report_file():
        replace_own_file(paths.report_file(), page)  # it is opened next, in a browser
        return paths.report_file()
    replace_file(file, page)
    return file


def make_report(snapshot: Snapshot, checkup: Checkup | None) -> str:
    home = str(Path.home())
    probe = find_result(snapshot)
    diagnostics = render_diagnostics(read_versions(), snapshot, checkup, home, render_brief(probe))
    spans = _read_spans(time.time())
    report = Report(__version__, snapshot, checkup, spans, probe, home, diagnostics)
    style, script = (
        paths.resource(name).read_text(encoding="utf-8") for name in ("report.css", "report.js")
    )
    return render_report(report, style, script)


def _read_spans(now: float) -> tuple[Period, ...]:
    """The last hour, and if there is more all of it."""
    start = read_start()
    if start is None:
        return ()
    spans = [read_span(max(start, now - _RECENT), now, _POINTS_RECENT)]
    if start < now - _RECENT - 600:
        spans.append(read_span(max(start, now - _ALL), now, _POINTS_ALL))
    return tuple(spans)
