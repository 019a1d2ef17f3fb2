"""What a click on a worker's rows does in the menu bar app, on the double of AppKit."""

from dataclasses import replace

import pytest
from samples import GB, MAC, SERVE, make_snapshot, make_training
from ui.menubar_kit import play

from mpsbar.core.actions import (
    Connect,
    Connected,
    FindTensors,
    Free,
    Freed,
    InspectPythons,
    Limit,
    Stop,
    Stopped,
    TensorGroup,
    Tensors,
)
from mpsbar.doctor.rules import DoctorReport


def test_free_and_the_menu_is_closed_when_it_ends(mac):
    freed = Freed(4711, "train.py", "done", int(3.1 * GB), 0.04)

    def person(user):
        user.click("train.py", "Free Cache")
        assert user.monitor.asked[0][0] == Free(4711)
        user.end(0, freed)
        assert user.notices.told == [("train.py", "Freed 3.1 GB in 40 ms", "freed-4711")]
        user.show(make_snapshot(make_training(held=3 * GB, cached=0), freed={4711: freed}))
        assert "train.py\tmps\t3.0 GB\t━────\tcached 0 B, freed 3.1 GB in 40 ms  ▸" in user.lines()

    play(mac, make_snapshot(make_training()), person)


def test_free_and_the_menu_is_open_when_it_ends(mac):
    freed = Freed(4711, "train.py", "busy", reason="thread_computing", where="a.py:3 in f")

    def person(user):
        user.click("train.py", "Free Cache")
        with user.open() as menu:
            user.show(make_snapshot(make_training(), pending=frozenset([Free(4711)])))
            assert "train.py\tmps\t6.0 GB\t━────\tcached 3.0 GB, freeing…  ▸" in menu.lines()
            user.end(0, freed)
            user.show(make_snapshot(make_training(), freed={4711: freed}))
            assert menu.lines()[5] == (
                "train.py\tmps\t6.0 GB\t━────\tcached 3.0 GB, busy: another thread is computing"
                " (a.py:3 in f); nothing was freed  ▸"
            )
        assert user.notices.told == []  # the row told it

    play(mac, make_snapshot(make_training()), person)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("done", "Freed 3.0 GB in 40 ms, at the first safe moment"),
        ("busy", "Busy: no safe moment was found; tried for 10 min; nothing was freed"),
    ],
)
def test_a_free_that_waited_tells_its_outcome(mac, state, text):
    """Once, minutes after the click, as a notification or in the row of an open menu."""
    is_done = state == "done"
    seconds = 0.04 if is_done else 600.0
    outcome = Freed(
        4711, "train.py", state, 3 * GB if is_done else None, seconds,
        asked_here=False, when_possible=True,
    )  # fmt: skip

    def person(user):
        user.monitor.happen(outcome)
        for _ in range(2):
            user.show(make_snapshot(make_training(), freed={4711: outcome}))
        assert user.notices.told == [("train.py", text, "freed-4711")]
        user.monitor.happen(outcome)
        with user.open() as menu:
            user.show(make_snapshot(make_training(), freed={4711: outcome}))
            assert any(text[1:] in line for line in menu.lines())
        assert len(user.notices.told) == 1
        user.monitor.happen(replace(outcome, when_possible=False))  # `mpsbar free` in a terminal
        user.monitor.happen(replace(outcome, asked_here=True))  # told where it was asked
        user.show(make_snapshot(make_training()))
        assert len(user.notices.told) == 1

    play(mac, make_snapshot(make_training()), person)


def test_free_all_is_one_notice(mac):
    def person(user):
        user.click("Free All Caches")
        assert [action for action, _ in user.monitor.asked] == [Free(1), Free(2), Free(3)]
        user.end(1, Freed(2, "b.py", "done", GB, 0.1))
        user.end(0, Freed(1, "a.py", "done", 2 * GB, 0.1))
        assert user.notices.told == []
        user.end(2, Freed(3, "c.py", "busy", reason="main_computing"))
        assert user.notices.told == [
            (
                "Freed 3.0 GB from 2 of 3 processes",
                "c.py: busy: the main thread is computing; nothing was freed",
                "freed-all",
            )
        ]

    play(
        mac,
        make_snapshot(make_training(1, "a.py"), make_training(2, "b.py"), make_training(3, "c.py")),
        person,
    )


def test_the_biggest_tensors_are_counted_when_they_come_into_view(mac):
    found = Tensors(4711, "done", (TensorGroup("mps", "float32", "4096x4096", 3, 3 << 26),))

    def person(user):
        with user.open("train.py") as menu:
            assert user.monitor.asked == []  # not before: it costs the worker a moment
            menu.enter("Largest Tensors")
            assert user.monitor.asked[0][0] == FindTensors(4711)
            user.show(make_snapshot(make_training(), pending=frozenset([FindTensors(4711)])))
            assert menu.lines() == ["(Counting…)"]  # what is spare is not seen
            user.show(make_snapshot(make_training(), tensors={4711: found}))
            assert menu.lines() == ["(192 MB  3 × float32 4096×4096  mps)"]
        with user.open("train.py", "Largest Tensors") as menu:
            assert user.monitor.asked[1][0] == FindTensors(4711)  # anew
            assert menu.lines() == ["(192 MB  3 × float32 4096×4096  mps)"]
            more = TensorGroup("cpu", "int64", "8", 1, 64)
            again = replace(found, groups=(*found.groups, more))
            user.show(make_snapshot(make_training(), tensors={4711: again}))
            assert menu.lines()[1] == "(64 B  int64 8  cpu)"  # there is room for what is new

    play(mac, make_snapshot(make_training()), person)


def test_tensors_are_not_counted_twice_at_once(mac):
    """Four counts of a worker that hangs would be all that the monitor does at once."""

    def person(user):
        for _ in range(5):
            user.lines("train.py", "Largest Tensors")
            user.show(make_snapshot(make_training(), pending=frozenset([FindTensors(4711)])))
        assert len(user.monitor.asked) == 1

    play(mac, make_snapshot(make_training()), person)


def test_stop_asks_and_is_firmer_the_second_time(mac):
    def person(user):
        mac.answer("Cancel")
        user.click("train.py", "Stop…")
        assert user.monitor.asked == []
        mac.answer("Stop")
        user.click("train.py", "Stop…")
        assert user.monitor.asked[0][0] == Stop(4711, 100.0, "train.py")
        stopped = Stopped(4711, "train.py", "asked")
        user.end(0, stopped)
        user.show(make_snapshot(make_training(), stopped={4711: stopped}))
        mac.answer("Terminate")
        user.click("train.py", "Stop…")
        assert user.monitor.asked[1][0] == Stop(4711, 100.0, "train.py", firmly=True)
        user.end(1, Stopped(4711, "train.py", "another", firmly=True))
        assert user.notices.told == [
            ("train.py", "Its PID now belongs to another process; nothing was sent", "stopped-4711")
        ]
        assert [alert.split("?")[0] for alert in mac.state.alerts] == [
            "Stop train.py (PID 4711)",
            "Stop train.py (PID 4711)",
            "Terminate train.py (PID 4711)",
        ]

    play(mac, make_snapshot(make_training()), person)


def test_connect_asks_and_says_that_it_takes_effect_later(mac):
    def person(user):
        mac.answer("Connect")
        user.click("serve.py", "Connect This Environment…")
        assert user.monitor.asked[0][0] == Connect("/v/bin/python")
        mac.answer("OK")
        user.end(0, Connected("/v/bin/python", "enabled"))
        mac.wait(1)
        asked, told = mac.state.alerts
        assert asked.startswith("Connect this environment?: /v/bin/python")
        assert told == (
            "Connected: /v/bin/python\n\nThe agent answered."
            " Restart the process for this to take effect."
        )

    play(mac, make_snapshot(processes=[SERVE]), person)


def test_what_ended_waits_with_its_dialog_for_an_open_menu_and_another_dialog(mac):
    ended = Connected("/v/bin/python", "enabled")

    def person(user):
        mac.answer("Connect")
        user.click("serve.py", "Connect This Environment…")
        with user.open() as menu:
            user.end(0, ended)
            menu.wait(5)
            assert len(mac.state.alerts) == 1
        mac.answer("OK")
        mac.wait(1)
        assert mac.state.alerts[-1].startswith("Connected: ")
        mac.answer("Connect")
        user.click("serve.py", "Connect This Environment…")
        mac.answer("OK", meanwhile=lambda: (user.end(1, ended), mac.wait(5)))
        mac.answer("OK")
        user.click("About mpsbar")
        mac.wait(1)
        assert mac.state.alerts[-2].startswith("mpsbar: Version")
        assert mac.state.alerts[-1].startswith("Connected: ")

    play(mac, make_snapshot(processes=[SERVE]), person)


def test_copies(mac):
    from AppKit import NSPasteboard, NSPasteboardTypeString

    def pasted():
        return NSPasteboard.generalPasteboard().stringForType_(NSPasteboardTypeString)

    def person(user):
        user.click("train.py", "Copy PID")
        assert pasted() == "4711"
        user.click("Copy Diagnostics")
        assert user.monitor.asked[0][0] == InspectPythons()
        user.end(0, DoctorReport(MAC))
        assert pasted().startswith("mpsbar 0")
        assert "Apple M3 Max · 36.0 GB" in pasted()
        assert "train.py" in pasted()
        assert user.notices.told[0][0] == "Diagnostics copied"

    play(mac, make_snapshot(make_training()), person)


def test_notify_when_it_ends(mac):
    def person(user):
        user.click("train.py", "Notify When Finished")
        assert "✓ Notify When Finished" in user.lines("train.py")
        for at in (2, 4, 6):
            user.show(make_snapshot(time=1000.0 + at))
        assert [title for title, _, _ in user.notices.told] == ["train.py ended"]
        assert user.app._controller.ui_state.watched == frozenset()

    play(mac, make_snapshot(make_training()), person)


def test_who_is_to_be_told_of_stays_so_when_its_start_becomes_known(mac):
    def person(user):
        user.click("train.py", "Notify When Finished")
        user.show(make_snapshot(make_training(), time=1002.0))
        assert "✓ Notify When Finished" in user.lines("train.py")
        user.click("train.py", "Notify When Finished")
        assert "Notify When Finished" in user.lines("train.py")
        for at in (4, 6, 8):
            user.show(make_snapshot(time=1000.0 + at))
        assert user.notices.told == []

    unknown = replace(make_training(), process=None)
    play(mac, replace(make_snapshot(make_training()), workers=(unknown,), processes=()), person)


def test_what_no_row_tells_is_announced_also_while_the_menu_is_open(mac):
    def person(user):
        for _ in range(2):
            user.click("Copy Diagnostics")
        with user.open():
            user.end(0, DoctorReport(MAC))
            user.monitor.asked[1][1].set_exception(OSError("no Python was found"))
            mac.wait(0)
        copied, failed = user.notices.told
        assert copied[0] == "Diagnostics copied"
        assert failed[0] == "Copy Diagnostics failed"
        assert failed[1].startswith("OSError: no Python was found. For details, see ")

    play(mac, make_snapshot(), person)


LIMITABLE = make_snapshot(make_training(methods=frozenset({"free", "tensors", "limit"})))


def test_a_limit_is_typed(mac):
    def person(user):
        mac.answer("Limit", "5 GB")
        user.click("train.py", "Limit Memory", "Custom…")
        assert [action for action, _ in user.monitor.asked] == [Limit(4711, 5 * GB)]

    play(mac, LIMITABLE, person)


def test_a_limit_that_is_not_typed_is_not_set(mac):
    def person(user):
        mac.answer("Cancel", "5 GB")
        user.click("train.py", "Limit Memory", "Custom…")
        assert user.monitor.asked == []

    play(mac, LIMITABLE, person)


@pytest.mark.parametrize(
    ("row", "title"),
    [
        ("Custom…", "Limit the memory of train.py failed"),
        ("75% of Budget (20.2 GB)", "Limit train.py to 20.2 GB failed"),
    ],
)
def test_a_limit_that_fails_is_told_and_the_log_has_the_details(
    mac, caplog, monkeypatch, row, title
):
    def person(user):
        def fail(action):
            raise OSError("too many open files")

        monkeypatch.setattr(user.monitor, "perform", fail)
        mac.answer("Limit", *(("5 GB",) if row == "Custom…" else ()))
        user.click("train.py", "Limit Memory", row)
        ((told, text, _),) = user.notices.told
        assert told == title
        assert text.startswith("OSError: too many open files. For details, see ")
        # Not what a thread logs that an earlier test's app has left.
        (line,) = [each for each in caplog.records if each.exc_info and each.name == "mpsbar"]
        assert line.message == title

    play(mac, LIMITABLE, person)
