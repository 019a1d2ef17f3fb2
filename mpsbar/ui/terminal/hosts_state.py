"""What `top --host` shows beside readings: order, selection, filter, history. No textual."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from mpsbar.core.host_readings import HostReading
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.core.trends import ProcessSeries, Trends
from mpsbar.language import _
from mpsbar.ui.process_table import TableRow, build_rows
from mpsbar.ui.terminal.order import TableOrder, arrange, matches
from mpsbar.ui.text.hosts import say_since

# Processes whose memory is followed over time, of all hosts: each takes up to 150 kB. The selected
# one always is.
_MAX_FOLLOWED = 60
# Rows of the table at most, and of each host at least: textual measures every cell of every row,
# and a host may say that it has thousands.
_MAX_ROWS, _FEW_ROWS = 1000, 20


class HostsState(TableOrder):
    """Used on the main thread only. For a silent host it keeps what was known last."""

    ended = None  # of the selected process; that is not known of other computers
    marks = ()

    def __init__(self) -> None:
        super().__init__()
        self.readings: list[HostReading] = []
        self.only = ""  # a host; "": the processes of all
        self.snapshots: dict[str, Snapshot] = {}  # by host, with their histories
        self._trends: dict[str, Trends] = {}
        # By host: its rows, and how many processes more there are. Built when they are shown.
        self._host_rows: dict[str, tuple[tuple[TableRow, ...], int]] = {}
        self._limit: int | None = None  # of processes in each of these
        self._order: list[str] = []

    def update(self, readings: list[HostReading]) -> bool:
        """Takes over the readings; returns whether one of them is new."""
        before = {reading.host: reading for reading in self.readings}
        new = [reading for reading in readings if before.get(reading.host) is not reading]
        if not new:
            return False
        self.readings = readings
        for reading in new:
            last = before.get(reading.host)
            if reading.status is not None and (last is None or last.status is not reading.status):
                self.snapshots[reading.host] = self._with_history(reading)
            self._host_rows.pop(reading.host, None)
        self.arrange()
        return True

    def arrange(self) -> None:
        """Put the rows in order: after a reading, or another order, filter or host."""
        shown = [r.host for r in self.readings if self.only in ("", r.host)]
        most = max(_MAX_ROWS // max(len(shown), 1), _FEW_ROWS)
        self._build_shown(shown, None if self.sort or self.filter else most)
        rows = [row for host in shown for row in self._host_rows[host][0]]
        ordered = arrange(rows, self.sort, self.descending, self._order)
        self._order = [row.key for row in ordered]
        place = next((n for n, row in enumerate(self.rows) if row.key == self.selected), 0)
        fitting = [row for row in ordered if _fits(row, self.filter)] if self.filter else ordered
        self.rows = tuple(self._cut(fitting, shown, most))
        keys = [row.key for row in self.rows]
        if self.selected not in keys:
            self.selected = keys[min(place, len(keys) - 1)] if keys else ""

    def forget_order(self) -> None:
        self._order = []
        self.arrange()

    def show_only(self, host: str) -> None:
        """Shows the processes of this host alone; "": of all."""
        self.only = host
        self.arrange()

    # --- what is selected

    @property
    def host(self) -> str:
        """The host of the selected process."""
        return "" if self.row is None else self.row.cells["HOST"]

    @property
    def snapshot(self) -> Snapshot:
        return self.snapshots.get(self.host) or Snapshot(0.0)

    @property
    def series(self) -> ProcessSeries | None:
        return self.snapshot.process_series.get(self.process.pid) if self.process else None

    def find_reading(self, host: str) -> HostReading | None:
        return next((reading for reading in self.readings if reading.host == host), None)

    # --- inside

    def _with_history(self, reading: HostReading) -> Snapshot:
        """Returns the last status with the history of its host; times are by our own clock."""
        assert reading.status is not None
        snapshot = replace(reading.status.snapshot, time=reading.answered_at or 0.0)
        most = _MAX_FOLLOWED // len(self.readings)
        chosen = self.process.pid if self.process and self.host == reading.host else None
        rest = [worker for worker in snapshot.workers[most:] if worker.pid == chosen]
        followed = (*snapshot.workers[:most], *rest[:1])
        processes = tuple(worker.process for worker in followed if worker.process is not None)
        trends = self._trends.setdefault(reading.host, Trends())
        trends.add(replace(snapshot, workers=followed, processes=processes))
        return replace(
            snapshot, process_series=trends.copy_processes(), machine_series=trends.copy_machine()
        )

    def _build_shown(self, hosts: list[str], limit: int | None) -> None:
        """Build the rows that are missing. Only where they are sorted or searched all are needed,
        and to build thousands of them takes most of a second."""
        if limit != self._limit:
            self._limit = limit
            self._host_rows.clear()
        for reading in self.readings:
            if reading.host in hosts and reading.host not in self._host_rows:
                self._host_rows[reading.host] = self._build_rows(reading)

    def _cut(self, rows: Sequence[TableRow], hosts: list[str], most: int) -> Sequence[TableRow]:
        """Returns at most `most` rows of each host, the selected one, and how many more there
        are."""
        counts = Counter[str]()
        left = Counter({host: n for host in hosts if (n := self._host_rows[host][1])})
        if len(rows) <= most and not left:
            return rows
        kept = []
        for row in rows:
            host = row.cells["HOST"]
            counts[host] += 1
            if counts[host] <= most or row.key == self.selected:
                kept.append(row)
            else:
                left[host] += 1
        for host, n in left.items():
            cells = {"HOST": host, "NAME": _("… and {n} more").format(n=n), "NOTE": ""}
            kept.append(TableRow(f"{host}/more", None, cells, {}))
        if not self.sort:  # the rows of each host are together
            positions = {host: position for position, host in enumerate(hosts)}
            kept.sort(key=lambda row: positions[row.cells["HOST"]])
        return kept

    def _build_rows(self, reading: HostReading) -> tuple[tuple[TableRow, ...], int]:
        """Builds the rows of a host; for a silent one the last known, and since when."""
        if reading.host not in self.snapshots:
            return (), 0
        snapshot, left = self._limit_processes(reading.host)
        rows = []
        for row in build_rows(snapshot):
            cells = row.cells | {"HOST": reading.host}
            if reading.problem is not None:
                cells["NOTE"] = say_since(reading)
            rows.append(replace(row, key=f"{reading.host}/{row.key}", cells=cells))
        return tuple(rows), left

    def _limit_processes(self, host: str) -> tuple[Snapshot, int]:
        """Returns at most `_limit` processes of this host, workers first, and how many more it
        has."""
        snapshot = self.snapshots[host]
        members: tuple[Worker | Process, ...] = (*snapshot.workers, *snapshot.unconnected)
        if self._limit is None or len(members) <= self._limit:
            return snapshot, 0
        kept = [
            member
            for place, member in enumerate(members)
            if place < self._limit or f"{host}/process-{member.pid}" == self.selected
        ]
        return replace(
            snapshot,
            workers=tuple(member for member in kept if isinstance(member, Worker)),
            processes=tuple(member for member in kept if isinstance(member, Process)),
        ), len(members) - len(kept)


def _fits(row: TableRow, text: str) -> bool:
    return matches(row, text) or text.lower() in row.cells["HOST"].lower()
