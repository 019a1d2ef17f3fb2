"""Who runs now: connected workers with what they hold, and those that are not connected. Pure."""

from mpsbar.history.report.content import Report
from mpsbar.history.report.html import Markup, build_table, tag
from mpsbar.ui.columns import REPORTED
from mpsbar.ui.text import wording
from mpsbar.ui.text.wording import _

_MOST = 200


def build_workers(report: Report) -> Markup:
    workers = report.snapshot.workers
    if not workers:
        return tag("p", wording.found(report.snapshot) or wording.workers_connected(0))
    heads = [_(column.title) for column in REPORTED]
    rows = [[column.cell(worker) for column in REPORTED] for worker in workers[:_MOST]]
    return build_table(_("Connected processes"), heads, rows)


def build_unconnected(report: Report) -> Markup | None:
    processes = report.snapshot.unconnected
    if not processes:
        return None
    columns = [column for column in REPORTED if column.is_outside]
    titles = {"DEVICE": _("Loaded"), "NOTE": _("To see more")}
    heads = [titles.get(column.key, _(column.title)) for column in columns]
    rows = []
    for process in processes[:_MOST]:
        how = wording.shorten_home(wording.how_to_connect_process(process), report.home)
        rows.append([how if one.key == "NOTE" else one.cell(process) for one in columns])
    return build_table(_("Processes that are not connected"), heads, rows)
