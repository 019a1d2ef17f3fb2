"""The report put together: what is known now, what was recorded, and the page it becomes."""

import time
from pathlib import Path

from mpsbar import __version__
from mpsbar.apps.versions import read_versions
from mpsbar.model.checkup import Checkup
from mpsbar.model.past import Span
from mpsbar.model.report import Report
from mpsbar.model.snapshot import Snapshot
from mpsbar.storage import paths
from mpsbar.storage.reading import read_span, read_start
from mpsbar.storage.replace import replace_file
from mpsbar.storage.results import find_result
from mpsbar.views.diagnostics import render_diagnostics
from mpsbar.views.report import render_report

_HOUR, _WEEK = 3600.0, 7 * 86400.0
# Points in a course: of an hour one each 15 s, of a week one each half hour.
_POINTS_HOUR, _POINTS_WEEK = 240, 336


def write_report(snapshot: Snapshot, checkup: Checkup | None, file: Path | None = None) -> Path:
    """OSError: it could not be written."""
    target = file or paths.report_file()
    replace_file(target, make_report(snapshot, checkup).encode("utf-8", "replace"))
    return target


def make_report(snapshot: Snapshot, checkup: Checkup | None) -> str:
    home = str(Path.home())
    probe = find_result(snapshot)
    diagnostics = render_diagnostics(read_versions(), snapshot, checkup, home, probe)
    spans = _read_spans(time.time())
    report = Report(__version__, snapshot, checkup, spans, probe, home, diagnostics)
    style, script = (
        paths.resource(name).read_text(encoding="utf-8") for name in ("report.css", "report.js")
    )
    return render_report(report, style, script)


def _read_spans(now: float) -> tuple[Span, ...]:
    """The last hour, and if there is more all of it."""
    start = read_start()
    if start is None:
        return ()
    spans = [read_span(max(start, now - _HOUR), now, _POINTS_HOUR)]
    if start < now - _HOUR - 600:
        spans.append(read_span(max(start, now - _WEEK), now, _POINTS_WEEK))
    return tuple(spans)
