"""What the terminal keeps beside the snapshot: selection, tree, log."""

from dataclasses import replace

import pytest
from samples import GB, MB, SERVE, make_snapshot, make_training
from ui.fake_monitor import FakeMonitor
from ui.terminal.top_kit import BUSY, build_series, seen
from ui.terminal_kit import play

from mpsbar.core.actions import Free, Freed
from mpsbar.core.events import EndedProcess
from mpsbar.core.findings import Health, Reason
from mpsbar.core.machine import Process

pytestmark = pytest.mark.usefixtures("noon")


def test_a_worker_that_dies_is_reported_and_another_takes_its_place():
    async def person(p):
        await p.show(seen())
        for number in range(3):
            await p.show(make_snapshot(BUSY, processes=(SERVE,), time=1002.0 + number))
        text = "train.py ended: Process 4711 is no longer running; it last held 6.0 GB, peak 6.0 GB"
        assert text in [note.text for note in p.app.state.notes]
        assert "12:00:00 train.py ended" in p.screen()
        await p.press("f")
        assert p.asked == [Free(4712)]

    play(FakeMonitor(seen()), person, (120, 40))


def test_a_free_by_another_program_is_a_line_of_the_log_and_ours_is_not_told_twice():
    async def person(p):
        p.monitor.happen(Freed(4711, "train.py", "done", 2 * GB, 0.04, asked_here=False))
        p.monitor.happen(Freed(4712, "notebook kernel", "done", GB, 0.04))
        await p.show(replace(seen(), time=1002.0))
        await p.show(replace(seen(), time=1004.0))
        assert p.screen().count("freed 2.0 GB") == 1
        assert "freed 1.0 GB" not in p.screen()
        assert "12:00:00 train.py: freed 2.0 GB in 40 ms" in p.screen()

    play(FakeMonitor(seen()), person)


def test_an_alert_is_a_line_of_the_log():
    worse = Health("critical", (Reason("pressure", "critical"),))

    async def person(p):
        await p.show(replace(seen(), health=worse, time=1002.0))
        assert "12:00:00 Critical: Memory pressure is critical" in p.screen()
        assert p.line("■ Memory pressure is critical")

    play(FakeMonitor(seen()), person)


def test_an_ended_process_stays_selected_and_keeps_its_chart():
    async def person(p):
        for look in list(build_series())[1:]:
            await p.show(look)
        now = 1030.0
        ended = EndedProcess(4711, 100.0, "train.py", now, peak=6 * GB, held=6 * GB)
        await p.show(make_snapshot(BUSY, processes=(SERVE,), time=now, ended=(ended,)))
        assert p.app.state.selected == "ended-4711-100"
        assert p.app.state.series.held[-1].value == 6 * GB
        assert "┤" in p.screen()
        await p.press("f")
        assert p.asked == []

    play(FakeMonitor(next(build_series())), person)


def test_escape_shows_the_machine_and_an_arrow_selects_again():
    async def person(p):
        await p.press("escape")
        assert "this computer" in p.screen()
        await p.show(replace(seen(), time=1002.0))
        assert "this computer" in p.screen()
        await p.press("f")
        assert p.asked == []
        await p.press("down", "f")
        assert len(p.asked) == 1

    play(FakeMonitor(seen()), person)


def test_children_under_their_parents_or_each_by_itself():
    worker = make_training()
    copies = tuple(
        Process(5000 + n, 100.0, "child process", ("torch",), parent=4711, footprint=MB)
        for n in range(3)
    )

    async def person(p):
        assert "└ 3 child processes" in p.screen()
        await p.press("v")
        assert "└" not in p.screen().split("memory")[1]
        assert p.screen().count("child process") == 3

    play(FakeMonitor(make_snapshot(worker, processes=copies)), person)
