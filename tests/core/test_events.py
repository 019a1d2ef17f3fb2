"""The log of events: numbered in their order, the newest kept, alerts apart from the others."""

from samples import make_snapshot

from mpsbar.core.actions import Freed
from mpsbar.core.events import MAX_ALERTS, MAX_OTHERS, Alert, EventLog
from mpsbar.ui.menu import build_menu
from mpsbar.ui.rows import UiState


def make_alert(pid):
    return Alert("leak", "warning", pid, 1.0, None, "raised", f"leak-{pid}", f"train{pid}.py")


def test_frees_push_no_alert_out_of_the_menu():
    log = EventLog()
    for pid in range(12):
        log.add(float(pid), make_alert(pid))
    for number in range(1000):
        log.add(100.0 + number, Freed(5, "serve.py", "done", 1 << 30, cause="keep_below"))
    menu = build_menu(make_snapshot(time=1200.0, events=log.recent), UiState(is_clickable=True))
    (recent,) = [row for row in menu.rows if row.key == "recent"]
    assert [row.key for row in recent.children] == [f"recent-{n}" for n in range(12, 2, -1)]


def test_the_newest_of_each_are_kept_in_their_order():
    log = EventLog()
    for pid in range(MAX_OTHERS + 7):
        log.add(0.0, Freed(pid, "serve.py", "done", 1))
        if pid < MAX_ALERTS + 3:
            log.add(0.0, make_alert(pid))
    numbers = [event.number for event in log.recent]
    assert numbers == sorted(numbers)
    assert numbers[-1] == MAX_OTHERS + 7 + MAX_ALERTS + 3
    alerts = [event.what.pid for event in log.recent if isinstance(event.what, Alert)]
    others = [event.what.pid for event in log.recent if isinstance(event.what, Freed)]
    assert alerts == list(range(3, MAX_ALERTS + 3))
    assert others == list(range(7, MAX_OTHERS + 7))
