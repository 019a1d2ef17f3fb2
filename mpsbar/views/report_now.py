"""Who runs now: connected workers with what they hold, and those that are not connected. Pure."""

from mpsbar.model.machine import Process
from mpsbar.model.report import Report
from mpsbar.model.snapshot import Worker
from mpsbar.views import wording
from mpsbar.views.diagnostics import shorten_home
from mpsbar.views.html import Markup, tag
from mpsbar.views.language import _
from mpsbar.views.report_table import build_table

_MOST = 200


def build_workers(report: Report) -> Markup:
    workers = report.snapshot.workers
    if not workers:
        return tag("p", wording.found(report.snapshot) or wording.workers_connected(0))
    heads = (
        _("Name"), _("PID"), _("Device"), _("Held"), _("Allocated"), _("Cached"), _("Peak"),
        _("Footprint"), _("GPU"), _("Note"),
    )  # fmt: skip
    rows = [_worker(worker) for worker in workers[:_MOST]]
    return build_table(_("Connected processes"), heads, rows)


def build_unconnected(report: Report) -> Markup | None:
    processes = report.snapshot.unconnected
    if not processes:
        return None
    heads = (_("Name"), _("PID"), _("Loaded"), _("Footprint"), _("GPU"), _("To see more"))
    rows = [_process(process, report.home) for process in processes[:_MOST]]
    return build_table(_("Processes that are not connected"), heads, rows)


def _worker(worker: Worker) -> tuple[object, ...]:
    bound = "≤ " if worker.cached_is_bound else ""
    outside = worker.process
    return (
        worker.name, worker.pid, wording.device(worker), wording.size(worker.held),
        wording.size(worker.total(lambda backend: backend.allocated)),
        bound + wording.size(worker.cached),
        wording.size(worker.total(lambda backend: backend.peak)),
        wording.size(outside.footprint if outside else None),
        wording.percent(outside.gpu_percent if outside else None), wording.state(worker),
    )  # fmt: skip


def _process(process: Process, home: str) -> tuple[object, ...]:
    way = shorten_home(wording.way_to_connect(process), home)
    return (
        process.name, process.pid, "+".join(process.frameworks), wording.size(process.footprint),
        wording.percent(process.gpu_percent), way,
    )  # fmt: skip
