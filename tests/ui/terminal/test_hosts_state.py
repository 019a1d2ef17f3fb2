"""What is kept of the hosts beside their readings: rows and history, both bounded."""

from samples import make_snapshot, make_training
from ui.terminal.top_kit import SINCE

from mpsbar.core.host_readings import HostReading, RemoteStatus
from mpsbar.ui.terminal.hosts_state import HostsState


def test_a_host_with_thousands_of_processes_takes_no_more_rows_than_there_is_room_for():
    def show(names):
        workers = (make_training(pid=n + 1, name=f"train{n}.py") for n in range(3000))
        status = RemoteStatus(make_snapshot(*workers), "ok", ())
        small = RemoteStatus(make_snapshot(make_training(pid=7)), "ok", ())
        state = HostsState()
        state.update([HostReading(n, status if n == "big" else small, SINCE) for n in names])
        return state

    state = show(["big", "mini"])
    assert [row.cells["NAME"] for row in state.rows[499:]] == [
        "train499.py", "… and 2500 more", "train.py",
    ]  # fmt: skip
    state.show_only("big")
    assert (len(state.rows), state.rows[-1].cells["NAME"]) == (1001, "… and 2000 more")
    state.set_filter("train2999")  # all of them are looked through
    assert [row.key for row in state.rows] == ["big/process-3000"]
    state.selected = "big/process-3000"
    state.set_filter("")  # what is selected stays
    assert state.row is not None
    state.show_only("")
    state.sort_by("NAME")
    assert [row.key for row in state.rows][-2:] == ["big/process-3000", "big/more"]


def test_what_a_hostile_host_makes_us_keep_is_bounded():
    state = HostsState()
    for step in range(5):
        workers = (make_training(pid=1000 * step + n + 1) for n in range(500))
        status = RemoteStatus(make_snapshot(*workers, time=1e300), "ok", ())
        state.update([HostReading("bad", status, SINCE + 2 * step)])
        assert len(state.snapshot.process_series) <= 60
        assert state.snapshot.time == SINCE + 2 * step
