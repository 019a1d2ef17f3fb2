"""The terminal app under textual's Pilot: screens as text, keys, the mouse, the end of workers."""

from dataclasses import replace

import pytest
from probe_samples import make_probe
from samples import GB, MAC, MB, make_snapshot, make_training
from ui.fake_monitor import FakeMonitor
from ui.terminal.top_kit import build_series, seen
from ui.terminal_kit import play

from mpsbar.core.actions import (
    Connect,
    Copy,
    FindTensors,
    Free,
    Freed,
    InspectPythons,
    ProbeDtypes,
    Stop,
    Stopped,
    TensorGroup,
    Tensors,
)
from mpsbar.core.dtype_results import Progress
from mpsbar.core.findings import Health, Reason
from mpsbar.doctor.rules import DoctorReport
from mpsbar.system.settings_file import write_setting

pytestmark = pytest.mark.usefixtures("noon")


@pytest.mark.parametrize("size", [(80, 24), (200, 50), (40, 12)])
def test_the_whole_screen(size, check_golden):
    looks = list(build_series())

    async def person(p):
        for look in looks[1:]:
            await p.show(look)
        await p.press("f")
        await p.end(0, Freed(4711, "train.py", "done", freed=3 * GB, seconds=0.04))
        check_golden(f"top-{size[0]}x{size[1]}.txt", p.screen() + "\n")

    play(FakeMonitor(looks[0]), person, size)


def test_free_asks_the_chosen_worker_and_tells_how_it_ended():
    async def person(p):
        await p.press("down", "f")
        assert p.asked == [Free(4712)]
        await p.end(
            0, Freed(4712, "notebook kernel", "busy", reason="thread_computing", where="a.py:1")
        )
        text = "12:00:00 notebook kernel: busy: another thread is computing (a.py:1)"
        assert text in p.screen()

    play(FakeMonitor(seen()), person)


def test_free_all_tells_each_and_the_sum():
    async def person(p):
        await p.press("F")
        assert p.asked == [Free(4711), Free(4712)]
        for number, pid in enumerate((4711, 4712)):
            await p.end(number, Freed(pid, f"w{pid}", "done", freed=GB, seconds=0.1))
        assert "12:00:00 Freed 2.0 GB from 2 of 2 processes" in p.screen()
        assert p.screen().count("freed 1.0 GB in 100 ms") == 2

    play(FakeMonitor(seen()), person, (100, 40))


def test_stop_asks_first_and_takes_no_by_default():
    async def person(p):
        await p.press("s")
        assert "Stop train.py (PID 4711)?" in p.screen()
        await p.press("enter")  # the careful answer
        assert p.asked == []
        await p.press("s", "escape")
        await p.press("s", "n")
        assert p.asked == []
        await p.press("s", "y")
        assert p.asked == [Stop(4711, 100.0, "train.py")]
        await p.end(0, Stopped(4711, "train.py", "asked"))
        assert "12:00:00 train.py: asked to stop (SIGINT)" in p.screen()
        await p.press("s", "up", "enter")
        assert len(p.asked) == 2

    play(FakeMonitor(seen()), person)


def test_tensors_are_counted_and_shown_when_they_are_known():
    async def person(p):
        await p.press("t")
        assert p.asked == [FindTensors(4711)]
        found = Tensors(4711, "done", (TensorGroup("mps:0", "float32", "1024x1024", 3, 12 * MB),))
        await p.show(replace(seen(), pending=frozenset({FindTensors(4711)})))
        assert "Counting…" in p.screen()
        await p.show(replace(seen(), tensors={4711: found}))
        assert "12.0 MB  3 × float32 1024×1024  mps:0" in p.screen()
        await p.press("escape")
        assert "float32" not in p.screen()

    play(FakeMonitor(seen()), person)


def test_what_cannot_be_done_does_nothing():
    async def person(p):
        await p.press("end")
        await p.press("f", "t", "x", "f5")
        assert p.asked == []
        keys = p.screen().splitlines()[-1]
        assert "c Connect" in keys
        assert "q Quit" in keys  # what does not fit goes before that
        await p.press("c")
        assert "Connect this environment?" in p.screen()
        await p.press("y")
        assert p.asked == [Connect("/v/bin/python")]

    play(FakeMonitor(seen()), person)


def test_the_probe_and_the_report_by_their_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(tmp_path))

    async def person(p):
        await p.press("p")
        assert p.asked == [ProbeDtypes()]
        await p.show(make_snapshot(make_training(), probing=Progress(42, 100)))
        assert "Probing… 42%" in p.screen()
        await p.end(0, make_probe())
        assert "dtype probe: as expected" in p.screen()
        await p.show(make_snapshot(make_training(), dtypes=make_probe()))
        assert "dtypes: as expected" in p.screen()
        await p.press("r")
        assert p.asked[1:] == [InspectPythons()]
        await p.end(1, DoctorReport(MAC))
        await p.wait_for("Report: ")
        (page,) = tmp_path.rglob("*.html")
        assert "train.py" in page.read_text()

    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    play(FakeMonitor(make_snapshot(make_training())), person)


def test_the_actions_of_a_row_and_its_detail_by_a_key_and_by_a_click():
    copied = []

    async def person(p):
        p.app._controller.front_end.copy = copied.append
        await p.press("a")
        assert "Notify When Finished" in p.screen()
        await p.click("Copy PID")
        assert copied == ["4711"]
        await p.click("serve.py")  # selects
        assert p.app.state.selected == "process-4720"
        assert "mpsbar enable --python /v/bin/python" not in p.screen()
        await p.click("serve.py")  # opens
        assert "mpsbar enable --python /v/bin/python" in p.screen()
        await p.press("escape", "a")
        assert "Connect This Environment…" in p.screen()
        await p.press("escape")
        assert "Connect This Environment…" not in p.screen()
        await p.click("F Free all")
        assert p.asked == [Free(4711), Free(4712)]
        await p.click("? Help")
        assert "free the selected process's cache" in p.screen()

    play(FakeMonitor(seen()), person)


def test_asking_never_waits_and_a_failure_is_reported():
    async def person(p):
        await p.press("f", "f", "t", "escape", "down")
        assert len(p.asked) == 3  # none has ended, and the screen moved on
        assert p.app.state.selected == "process-4712"
        p.monitor.asked[0][1].set_exception(OSError("no socket"))
        await p.pilot.pause()
        assert "12:00:00 OSError: no socket" in p.screen()

    play(FakeMonitor(seen()), person)


HOSTILE = (
    "[bold red]evil[/]", "\x1b[2J\x1b]0;owned\x07", "a\r\nb\tc", "\u202egnp.exe", "日本語の訓練.py", "é" + "\u0301" * 40,
    "[@click=app.quit]x[/]", "<img onerror=alert(1)>", "%s{0}{name}", "└ child", "x" * 500,
)  # fmt: skip


def test_a_hostile_name_stays_text_everywhere():
    async def person(p):
        for number, name in enumerate(HOSTILE):
            pid = 5000 + number
            evil = make_training(pid, name, command=(name,))
            leak = Reason("leak", "warning", {"growth": GB, "seconds": 60.0}, pid)
            raised = Health("warning", (leak,))
            for health in (Health(), raised):
                await p.show(make_snapshot(evil, health=health, time=p.monitor.latest.time + 2))
            await p.press("f")
            await p.end(-1, Freed(pid, name, "done", freed=GB, seconds=0.1))
            for key in ("s", "t", "enter"):
                await p.press(key)
                whole = p.screen()
                assert "\x1b" not in whole
                assert "\r" not in whole
                assert "\u202e" not in whole
                assert all(line.isprintable() for line in whole.splitlines())
                assert len(whole.split("\n")) == 24
                await p.press("escape")
            if name.startswith("["):
                assert name in p.screen()  # no markup was understood
        assert p.asked == [
            what(5000 + n) for n in range(len(HOSTILE)) for what in (Free, FindTensors)
        ]

    play(FakeMonitor(make_snapshot()), person)


def test_what_the_mouse_selects_is_copied_by_ctrl_c_which_else_quits():
    async def person(p):
        facts = p.app.query_one("#facts")
        line = next(n for n, strip in enumerate(facts._strips) if "train.py" in strip.text)
        start = 1 + facts._strips[line].text.index("train.py")  # behind the padding
        await p.pilot.mouse_down(facts, offset=(start, line))
        await p.pilot.hover(facts, offset=(start + len("train.py") - 1, line))
        await p.pilot.mouse_up(facts, offset=(start + len("train.py") - 1, line))
        await p.pilot.pause()
        await p.press("ctrl+c")
        assert (p.app.clipboard, p.app._exit) == ("train.py", False)
        assert p.app.screen.get_selected_text() is None
        await p.press("ctrl+c")
        assert p.app._exit

    play(FakeMonitor(seen()), person, (120, 40))


def test_copy_is_an_action_of_a_row_as_in_the_menu():
    async def person(p):
        assert Copy("4711") in [a for row in p.app.state.actions for a in row.actions]

    play(FakeMonitor(seen()), person)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_the_stored_pictures(size, check_golden):
    """By textual itself; `pytest --golden` writes them anew."""
    import textual

    if not textual.__version__.startswith("8.2."):
        pytest.skip("they were made by textual 8.2")
    looks = list(build_series())

    async def person(p):
        for look in looks[1:]:
            await p.show(look)
        check_golden(f"top-{size[0]}x{size[1]}.svg", p.app.export_screenshot() + "\n")

    play(FakeMonitor(looks[0]), person, size)


def test_dtypes_and_the_command_palette():
    async def person(p):
        await p.press("d")
        assert "p runs the probe" in p.screen()
        await p.press("escape")
        await p.show(make_snapshot(make_training(), dtypes=make_probe()))
        await p.press("d")
        assert "float32" in p.screen()
        assert "verdict" in p.screen()
        await p.press("escape", "ctrl+p", *"free cache")
        await p.wait_for("Free Cache")
        await p.press("escape")

    play(FakeMonitor(make_snapshot(make_training())), person, (100, 30))


def test_what_the_menu_has_chosen_about_automatic_frees_is_taken_over(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path))

    async def person(p):
        write_setting("free_when_idle", True)
        await p.show(seen())
        assert p.monitor.settings.free_when_idle is True
        assert p.app.state.ui_state.settings.free_when_idle is True

    play(FakeMonitor(seen()), person)
