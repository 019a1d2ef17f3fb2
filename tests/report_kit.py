"""A small report of everything, and a page as the text that it is to a reader."""

import html.parser
from datetime import timezone

from history_kit import GB, HOSTILE, MB, NOW, make_doctor_report, make_report_snapshot

from mpsbar.core.dtype_results import Cell, Check, OperationSpeed, Probe
from mpsbar.core.events import EndedProcess
from mpsbar.core.fallbacks import FallbackOperation, Fallbacks
from mpsbar.core.torch_facts import NativeOperations
from mpsbar.core.verdicts import EndVerdict
from mpsbar.doctor.diagnostics import render_diagnostics
from mpsbar.dtypes.deep_results import DeepCell, DeepProbe
from mpsbar.dtypes.summary import render_brief
from mpsbar.history.period import Period, RecordedEvent, Run, TimeSeries
from mpsbar.history.report.page import Report, render_report
from mpsbar.system.paths import resource

HOME = "/Users/jane"
BLOCKS = {
    "p", "h1", "h2", "h3", "h4", "li", "tr", "pre", "summary", "legend", "caption", "title", "footer",
    "figure", "label", "button", "svg",
}  # fmt: skip


def make_probe():
    cells = []
    for operation in ("add", "matmul"):
        cells += [Cell(operation, "float32", "works")]
        cells += [
            Cell(
                operation,
                "float16",
                "works" if operation == "add" else "inaccurate",
                "off by 0.3 <b>",
            )
        ]
        cells += [Cell(operation, "float64", "unsupported", "TypeError: MPS has no float64")]
    return Probe(
        python=f"{HOME}/venv/bin/python", ended="ok", version="3.12.1", torch="2.9.0", system="26.3",
        os="macOS", device="mps", device_name="Apple M3 Max", cells=tuple(cells),
        checks=(Check("addcdiv", "wrong", "y[0] is 3.0, not 2.0"), Check("adam", "right")),
        speeds=(OperationSpeed("matmul", "1536×1536", {"float32": (2e-3, 2e-3)}),), time=NOW - 86400,
    )  # fmt: skip


def make_deep():
    cells = (
        DeepCell("add", "float32", "works", True), DeepCell("add", "float64", "unsupported", False, "TypeError: no"),
        DeepCell("mm", "float32", "works", True), DeepCell("mm", "float16", "inaccurate", True, "largest error: 0.3 <b>"),
    )  # fmt: skip
    return DeepProbe(
        python=f"{HOME}/venv/bin/python", ended="ok", version="3.12.1", torch="2.9.0", system="26.3", os="macOS",
        device="mps", device_name="Apple M3 Max", total=4, time=NOW - 3600, cells=cells,
    )  # fmt: skip


def make_period(seconds=3600.0, step=120.0):
    """From 1 to 5 GB in even steps; once the cache is not known."""
    since, points = NOW - seconds, int(seconds / step)
    times = tuple(since + step * n for n in range(1, points + 1))
    values = tuple((1 + 5 * n // points) * GB for n in range(points))
    machine = TimeSeries(
        times,
        {"used": values, "swap": (0,) * points, "gpu": values, "busy": (50,) * points,
         "total": (36 * GB,) * points, "budget": (27 * GB,) * points},
    )  # fmt: skip
    held = TimeSeries(
        times,
        {"allocated": values, "cached": (*(GB,) * 9, None, *(GB,) * (points - 10)), "held": values,
         "footprint": values},
    )  # fmt: skip
    runs = (
        Run(4001, "train_1.py", "mps", True, since, NOW, None, None, 5 * GB, 6 * GB,
            {"held": 5 * GB}, held),
        Run(4003, HOSTILE, "mps", True, since, NOW - 60, NOW - 58, "pressure", 3 * GB, 3 * GB,
            {"held": GB}, held),
        Run(4009, "overnight.py", "mps", True, since - 9e4, NOW - 8e4, NOW - 8e4, "unseen",
            20 * GB, 21 * GB, {"held": 19 * GB}),
    )  # fmt: skip
    events = (
        RecordedEvent(NOW - 300, "free", "done", 4001, "train_1.py", size=int(1.2 * GB)),
        RecordedEvent(NOW - 400, "alert", "leak", 4003, HOSTILE, "warning", None, "raised",
                  {"growth": 1400 * MB, "seconds": 300}),
        RecordedEvent(NOW - 500, "free", "busy", 4001, "train_1.py"),
    )  # fmt: skip
    return Period(since, NOW, machine, runs, events)


def make_ends():
    """One run that ran out of memory with operations on the CPU, and one whose texts are hostile."""
    counted = Fallbacks(
        (
            FallbackOperation("aten::cumsum", 1204, f"{HOME}/work/train.py:31", 2.5, 3 << 20),
            FallbackOperation("aten::never", 1),
        ),
        "2.13.0",
        is_profiled=True,
    )
    first = Fallbacks((FallbackOperation(HOSTILE, 1, HOSTILE),), "2.13.0", is_counted=False)
    memory = {"type": "RuntimeError", "text": "MPS backend out of memory", "at": 27 * 1024 * MB}
    words = {"type": "ValueError", "text": HOSTILE, "where": "a.py:3"}
    return (
        EndedProcess(
            4001, NOW - 9000, "train_1.py", NOW - 60, ran=8940.0, how="out_of_memory",
            verdict=EndVerdict("out_of_memory", "known", memory, ("exit_status", "last_words"), (), counted),
        ),
        EndedProcess(
            4003, NOW - 9000, HOSTILE, NOW - 90, how="exception",
            verdict=EndVerdict("exception", "known", words, ("last_words",), ("system_reports",), first),
        ),
    )  # fmt: skip


def make_report(**fields):
    snapshot, doctor_report, probe = make_report_snapshot(), make_doctor_report(), make_probe()
    diagnostics = render_diagnostics(
        "0.1.0 · Python 3.12.1", snapshot, doctor_report, HOME, render_brief(probe)
    )
    given = {
        "deep": make_deep(),
        "periods": (make_period(), make_period(3 * 86400.0, 2400.0)), "probe": probe, "home": HOME,
        "diagnostics": diagnostics, "ends": make_ends(), "native": NativeOperations({"cumsum": (2, 14)}, (2, 15)),
    } | fields  # fmt: skip
    return Report("0.1.0", snapshot, **given)


def make_page(report=None):
    style, script = (resource(name).read_text() for name in ("report.css", "report.js"))
    return render_report(report or make_report(), style, script, timezone.utc)


class _Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.lines, self.quiet = [], [""], 0

    def handle_starttag(self, name, attributes):
        self.tags.append((name, dict(attributes)))
        if name in ("script", "style"):
            self.quiet += 1
        elif name in BLOCKS and self.lines[-1]:
            self.lines.append("")
        if name in ("td", "th") and self.lines[-1]:
            self.lines[-1] += " | "
        label = dict(attributes).get("aria-label")
        if label and name in ("svg", "input", "button"):
            self.lines[-1] += f"[{label}]"

    def handle_endtag(self, name):
        if name in ("script", "style"):
            self.quiet -= 1
        elif name in BLOCKS and self.lines[-1]:
            self.lines.append("")

    def handle_data(self, data):
        if not self.quiet:
            self.lines[-1] += data


def read_page(page):
    reader = _Reader()
    reader.feed(page)
    return reader


def read_text(page):
    return "\n".join(line.strip() for line in read_page(page).lines if line.strip()) + "\n"
