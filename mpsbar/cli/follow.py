"""mpsbar status PID: prints a line about a process at each reading, then how it ended."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from mpsbar.agent.frameworks import join_labels
from mpsbar.cli.output import is_coloured, line_width, treat_signals_as_ctrl_c
from mpsbar.core.errors import UserError
from mpsbar.language import _

if TYPE_CHECKING:
    from mpsbar.core.snapshot import Snapshot
    from mpsbar.monitor import Monitor
    from mpsbar.ui.process_table import TableRow

_SECONDS = 2.0
_HEADER_EVERY = 20  # lines
# After this many readings without the process it counts as ended.
_MAX_MISSED = 5
_PID_AND_NAME = 5 + 16 + 2 * 2  # minimum widths and gaps


def follow(pid: int, as_json: bool, seconds: float | None) -> int:
    """Returns when the process has ended, or after Ctrl-C; with --json alone after one reading."""
    from mpsbar.cli.status import make_recorder

    treat_signals_as_ctrl_c()
    monitor = make_recorder()
    try:
        snapshot = monitor.read_once()
        if find_row(snapshot, pid) is None:
            raise UserError(
                _("no {frameworks} process of yours has the PID {pid} (see mpsbar status)").format(
                    frameworks=join_labels(_("or")), pid=pid
                )
            )
        if as_json and seconds is None:
            print(_render_json(snapshot, pid))
            return 0
        for line in _render_lines(monitor, snapshot, pid, as_json, seconds or _SECONDS):
            print(line, flush=True)
    except KeyboardInterrupt:
        pass
    finally:
        monitor.close()
    return 0


def _render_lines(
    monitor: "Monitor", snapshot: "Snapshot", pid: int, as_json: bool, seconds: float
) -> Iterator[str]:
    """Yields the lines about one process until it has ended."""
    from mpsbar.cli.status import read_after
    from mpsbar.ui.text.endings import describe_end

    lines = _Lines(pid)
    missed, name = 0, str(pid)
    while missed < _MAX_MISSED:
        row = find_row(snapshot, pid)
        if row is not None:
            missed, name = 0, row.cells["NAME"]
            yield from [_render_json(snapshot, pid)] if as_json else lines.render(snapshot, row)
        elif snapshot.processes is not None:  # else a reading came too late to tell
            missed += 1
        ended = next((end for end in snapshot.ended if end.pid == pid), None)
        if row is None and ended is not None:
            if not as_json:
                yield f"{ended.name}: {describe_end(ended, snapshot.time)}"
            return
        snapshot = read_after(monitor, seconds)
    if not as_json:
        yield _("{name}: ended").format(name=name)


def find_row(snapshot: "Snapshot", pid: int) -> "TableRow | None":
    from mpsbar.ui.process_table import build_rows

    rows = build_rows(snapshot, as_tree=False)
    return next((row for row in rows if row.process is not None and row.process.pid == pid), None)


class _Lines:
    """Renders the columns of `status` and `top`, with the time in place of the PID and the name."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._printed = 0
        self._keys: list[str] = []  # of the columns in the last header

    def render(self, snapshot: "Snapshot", row: "TableRow") -> Iterator[str]:
        from mpsbar.ui.process_table import choose_columns
        from mpsbar.ui.text import cells, wording

        clock = wording.clock(snapshot.time, seconds=True)
        # The first line has the PID and the name, so their width is free for other columns.
        width = line_width() - len(clock) - 2 + _PID_AND_NAME
        nameless = replace(row, cells=row.cells | {"PID": "", "NAME": ""})
        chosen = choose_columns([nameless], snapshot, width, "status", is_steady=True)
        columns = [column for column in chosen if column.key not in ("PID", "NAME")]
        keys = [column.key for column in columns]
        if not self._printed:
            yield _("{name} ({pid}), until it ends or you press Ctrl-C").format(
                name=row.cells["NAME"], pid=self._pid
            )
        if self._printed % _HEADER_EVERY == 0 or keys != self._keys:
            headers = [cells.fit(c.header, c.width, c.column.to_right) for c in columns]
            head = "  ".join([cells.fit(_("TIME"), len(clock)), *headers]).rstrip()
            yield (cells.in_colour if is_coloured() else cells.plain)(head, "head")
        self._keys = keys
        self._printed += 1
        yield "  ".join([clock, *(c.fit(row.cells.get(c.key, "")) for c in columns)]).rstrip()


def _render_json(snapshot: "Snapshot", pid: int) -> str:
    """Returns the JSON of `status` with this process alone."""
    from mpsbar.ui.text.status_json import build_status

    whole = build_status(snapshot)
    for key in ("workers", "processes"):
        whole[key] = [entry for entry in whole[key] or () if entry["pid"] == pid]
    return json.dumps(whole)
