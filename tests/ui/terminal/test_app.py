"""The terminal app under textual's Pilot: screens as text, keys, the mouse, the end of workers."""

import gc
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from probe_samples import make_probe
from samples import GB, MAC, MB, make_snapshot, make_training
from textual.color import Color
from textual.widgets import DataTable
from ui.fake_monitor import FakeMonitor

pytest.importorskip("textual")
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
from mpsbar.core.events import EndedProcess
from mpsbar.core.findings import Health, Reason
from mpsbar.core.machine import Process
from mpsbar.core.settings import Settings
from mpsbar.doctor.rules import DoctorReport
from mpsbar.system.settings_file import write_setting
from mpsbar.ui.terminal.keys import KEYS, KeyLine, list_help
from mpsbar.ui.terminal.themes import theme_name

SERVE = Process(4720, 50.0, "serve.py", ("torch",), footprint=2 * GB, python="/v/bin/python")
TRAIN = make_training(command=("python", "train.py", "--lr", "0.1"))
BUSY = make_training(4712, "notebook kernel", 1400 * MB, 400 * MB, state="busy", age=3.2)


@pytest.fixture(autouse=True)
def noon(monkeypatch):
    clock = SimpleNamespace(strftime=lambda *_: "12:00:00")
    monkeypatch.setattr("mpsbar.ui.terminal.state.time", clock)
    monkeypatch.setenv("TZ", "UTC")  # of the axis
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def seen():
    return make_snapshot(TRAIN, BUSY, processes=(SERVE,))


def build_series(person_steps=(1, 2, 3, 4, 3, 5, 6, 4, 2, 6)):
    """Looks two seconds apart, in which train.py holds more and less."""
    for number, held in enumerate(person_steps):
        worker = make_training(
            held=held * GB, cached=held * GB // 3, command=("python", "train.py", "--lr", "0.1")
        )
        yield make_snapshot(worker, BUSY, processes=(SERVE,), time=1000.0 + 3 * number)


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
        await p.end(0, Freed(4712, "4712", "busy", reason="thread_computing", where="a.py:1"))
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


def test_the_filter_keeps_what_contains_it():
    async def person(p):
        await p.press("slash", *"TRain")
        assert "\nTRain" in p.screen()
        assert "serve.py" not in p.screen()
        await p.press("enter")
        assert [row.key for row in p.app.state.rows] == ["process-4711"]
        assert "underline" in str(p.style_of("train"))
        await p.press("f")
        assert p.asked == [Free(4711)]
        await p.press("slash", *"zz")
        assert "No rows contain “TRainzz”" in p.screen()
        await p.press("backspace", "backspace", "q")  # a letter here, not the end
        assert "TRainq" in p.screen()
        await p.press("escape")
        assert "serve.py" in p.screen()

    play(FakeMonitor(seen()), person)


def names(p):
    """As they stand in the table on the screen."""
    lines = [line.strip("│ ").split() for line in p.screen().splitlines()]
    return [
        words[1]
        for words in lines
        if len(words) > 2 and words[0].isdigit() and words[1].endswith(".py")
    ]


def test_sorting_by_key_and_by_a_click_and_back_to_the_order_of_the_menu():
    small = make_training(4713, "a.py", 1 * GB, 900 * MB)
    big = make_training(4714, "b.py", 9 * GB, 1 * MB)

    async def person(p):
        assert names(p) == ["train.py", "a.py", "b.py"]
        await p.press("o")
        assert names(p) == ["b.py", "train.py", "a.py"]
        await p.press("O")
        assert names(p) == ["a.py", "train.py", "b.py"]
        await p.click("CACHED")
        assert names(p) == ["train.py", "a.py", "b.py"]
        await p.click("NAME")
        assert names(p) == ["a.py", "b.py", "train.py"]
        await p.press("o")
        assert names(p) == ["train.py", "a.py", "b.py"]

    play(FakeMonitor(make_snapshot(TRAIN, small, big)), person)


def test_rows_do_not_jump_for_a_little_and_the_chosen_process_stays_chosen():
    def look(a, b, at):
        return make_snapshot(
            make_training(1, "a.py", a, 0), make_training(2, "b.py", b, 0), time=1000.0 + at
        )

    async def person(p):
        await p.press("o", "down")
        assert names(p) == ["a.py", "b.py"]
        await p.show(look(100 * MB, 105 * MB, 2))
        assert names(p) == ["a.py", "b.py"]
        await p.show(look(100 * MB, 200 * MB, 4))
        assert names(p) == ["b.py", "a.py"]
        await p.press("f")
        assert p.asked == [Free(2)]

    play(FakeMonitor(look(100 * MB, 90 * MB, 0)), person)


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


def test_many_workers_scroll_and_all_can_be_reached():
    many = make_snapshot(*(make_training(5000 + n, f"w{n}.py") for n in range(60)))

    async def person(p):
        assert "w0.py" in p.screen()
        assert "w59.py" not in p.screen()
        await p.press("end")
        assert "w59.py" in p.screen()
        await p.press("f", "home", "pagedown", "f")
        assert p.asked[0] == Free(5059)
        assert 5002 < p.asked[1].pid < 5020

    play(FakeMonitor(many), person)


def test_no_colour_where_none_is_wanted(monkeypatch):
    async def colours(p):
        strips = p.app.screen._compositor.render_strips()
        styles = [segment.style for strip in strips for segment in strip if segment.style]
        return {style.color.name for style in styles if style.color and not style.color.is_default}

    async def with_colour(p):
        assert "#5b8ff9" in await colours(p)

    async def without(p):
        assert await colours(p) == set()

    play(FakeMonitor(seen()), with_colour)
    monkeypatch.setenv("NO_COLOR", "1")
    play(FakeMonitor(seen()), without)


def test_nobody_there_says_what_to_do():
    async def person(p):
        assert "To start one: mpsbar run python train.py" in " ".join(p.screen().split())
        await p.press("f", "F", "t", "s", "enter", "o", "end", "up")
        assert p.asked == []

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


def test_what_is_offered_is_what_works_on_the_selected_row():
    async def person(p):
        def keys():
            return p.screen().splitlines()[-1]

        assert "f Free F" in keys()
        assert "Connect" not in keys()
        await p.press("end")
        assert "c Connect" in keys()
        assert "f Free F" not in keys()
        await p.press("escape", "a")  # nothing is selected, so there is nothing to choose from
        assert len(p.app.screen_stack) == 1

    play(FakeMonitor(seen()), person)


def test_keys_that_are_no_longer_shown_do_not_stay_in_memory():
    """textual's own footer keeps every one (Textualize/textual#6666)."""

    def count():
        gc.collect()
        return sum(type(each).__name__ == "FooterKey" for each in gc.get_objects())

    async def person(p):
        before = count()
        for _ in range(5):
            for place, key in (("end", "c Connect"), ("home", "f Free F")):
                await p.press(place)
                assert key in p.screen().splitlines()[-1]
        assert count() <= before + 10

    play(FakeMonitor(seen()), person)


def test_several_changes_of_the_keys_are_drawn_once(monkeypatch):
    composed, compose = [], KeyLine.compose
    monkeypatch.setattr(KeyLine, "compose", lambda line: composed.append(line) or compose(line))

    async def person(p):
        assert len(composed) < 5  # while the app starts they change again and again
        composed.clear()
        p.app._offered = frozenset()
        for _ in range(5):
            p.app.query_one(KeyLine).bindings_changed(p.app.screen)
        await p.pilot.pause()
        assert len(composed) == 1

    play(FakeMonitor(seen()), person)


def test_a_reading_does_not_put_the_cursor_back():
    """A key moves the cursor at once; textual tells of it later, after the reading perhaps."""

    async def person(p):
        table = p.app.main_table
        first = table.cursor_key
        with table.prevent(DataTable.RowHighlighted):  # not yet told
            table.action_cursor_down()
        p.app._take()
        assert table.cursor_key != first
        assert p.app.state.selected == table.cursor_key

    play(FakeMonitor(seen()), person)


def test_the_row_under_the_cursor_is_meant_however_fast_one_types():
    async def person(p):
        await p.type_fast("down", "f")
        assert p.asked == [Free(4712)]

    play(FakeMonitor(seen()), person)


def test_letters_typed_fast_behind_the_slash_are_the_filters():
    async def person(p):
        await p.type_fast("slash", "s", "f")
        assert (p.app.state.filter, p.asked) == ("sf", [])

    play(FakeMonitor(seen()), person)


@pytest.mark.parametrize("leave", ["enter", "down"])
def test_a_key_typed_fast_behind_the_filter_is_about_the_row_that_was_found(leave):
    async def person(p):
        await p.type_fast("slash", *"kernel", leave, "f")
        assert (p.app.state.filter, p.asked) == ("kernel", [Free(4712)])

    play(FakeMonitor(seen()), person)


def test_a_key_typed_fast_behind_the_end_of_the_filter_is_not_in_it():
    async def person(p):
        await p.type_fast("slash", *"kernel", "escape", "f")
        assert (p.app.state.filter, len(p.asked)) == ("", 1)

    play(FakeMonitor(seen()), person)


def test_what_is_behind_the_help_is_dimmed_and_follows(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path))  # a theme is kept there
    first, *_others, last = build_series()

    def colour_of(p, text):
        return Color.from_rich_color(p.style_of(text).color)

    async def person(p):
        plain = colour_of(p, "2.4 GB held")
        await p.press("?")
        assert "this help" in p.screen()
        dimmed = colour_of(p, "2.4 GB held")
        assert dimmed == plain + p.app.screen.styles.background
        assert not any(s.style.meta for s in p.app.screen._compositor.render_strips()[0])
        line = p.app.screen.render_line(0)
        p.app.screen.refresh()  # its own: what is behind is not drawn again
        assert p.app.screen.render_line(0) is line
        await p.show(last)
        assert "2.4 GB held" not in p.screen()
        assert colour_of(p, "7.4 GB held") == dimmed
        p.app.theme = theme_name("light")
        await p.pilot.pause()
        light = colour_of(p, "7.4 GB held")
        await p.press("q")
        assert colour_of(p, "7.4 GB held") != light != dimmed

    play(FakeMonitor(first), person, (120, 40))


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


def test_a_theme_that_is_chosen_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path))

    async def person(p):
        p.app.theme = "mpsbar-light"
        await p.wait_until(lambda: p.monitor.settings.theme == "light")
        assert p.app.state.ui_state.settings.theme == "light"

    play(FakeMonitor(seen()), person)


def test_every_theme_of_textual_can_be_chosen(tmp_path, monkeypatch):
    """They have none of our names for colours."""
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path))

    async def person(p):
        for name in p.app.available_themes:
            p.app.theme = name
            await p.pilot.pause()
            assert "train.py" in p.screen(), name

    play(FakeMonitor(seen()), person)


def test_a_theme_changes_the_colour_of_every_text(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path))

    async def person(p):
        before = p.style_of("serve.py").color
        p.app.theme = "mpsbar-light"
        await p.wait_until(lambda: p.style_of("serve.py").color != before)
        assert p.style_of("serve.py").color == p.app.palette.style("quiet").color != before

    play(FakeMonitor(seen()), person)


def test_a_process_that_connects_is_no_longer_grey():
    async def person(p):
        before = p.style_of("serve.py").color
        serve = make_training(SERVE.pid, "serve.py", process=SERVE)
        await p.show(make_snapshot(TRAIN, serve, time=1002.0))
        assert p.style_of("serve.py").color != before

    play(FakeMonitor(make_snapshot(TRAIN, processes=(SERVE,))), person)


def test_what_the_menu_has_chosen_about_automatic_frees_is_taken_over(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path))

    async def person(p):
        write_setting("free_when_idle", True)
        await p.show(seen())
        assert p.monitor.settings.free_when_idle is True
        assert p.app.state.ui_state.settings.free_when_idle is True

    play(FakeMonitor(seen()), person)


@pytest.mark.parametrize(
    ("size", "theme"),
    [
        ((40, 10), "dark"), ((30, 8), "light"), ((60, 16), "contrast"), ((100, 30), "light"),
        ((250, 70), "dark"),
    ],
)  # fmt: skip
def test_at_any_size_the_processes_can_be_read(size, theme, tmp_path, monkeypatch):
    """From the start and in every theme that is chosen then."""
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path))

    async def person(p):
        assert p.app.theme == theme_name(theme)
        for chosen in (theme, "dark", "light", "contrast"):
            p.app.theme = theme_name(chosen)
            await p.pilot.pause()
            assert "train.py" in p.screen()
            assert "6.0 GB" in p.screen()

    play(FakeMonitor(seen()), person, size, Settings(theme=theme))


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 130])
def test_help_and_quit_are_in_the_last_line_at_any_width(width):
    async def person(p):
        await p.wait_for("? Help")
        line = p.screen().splitlines()[-1]
        assert "? Help q Quit" in line
        assert ("^p" in line) == (width >= 110)

    play(FakeMonitor(seen()), person, (width, 24))


@pytest.mark.parametrize("size", [(40, 10), (80, 24), (120, 40)])
def test_the_help_can_be_read_to_its_end_and_a_question_answered_at_any_size(size):
    async def person(p):
        await p.press("?")
        read = p.screen()
        for _ in range(14):
            await p.press("pagedown")
            read += "\n" + p.screen()
        words = {word for line in list_help(KEYS) for word in line.split()}
        assert words <= set(read.replace("│", " ").split())
        assert "?: unknown" in p.screen()
        await p.press("q", "s")
        assert "Cancel" in p.screen()
        await p.click("Cancel")
        assert "Cancel" not in p.screen()

    play(FakeMonitor(seen()), person, size)


def test_the_last_line_follows_the_width_and_stays_as_it_is_behind_the_help():
    def keys(p):
        return p.screen().splitlines()[-1]

    async def person(p):
        wide = keys(p)
        assert "^p palette" in wide
        await p.press("?")
        assert keys(p) == wide
        await p.show(make_snapshot(processes=(SERVE,)))  # nothing is left that could be freed
        await p.press("q")
        assert "c Connect" in keys(p)
        assert "f Free" not in keys(p)
        for width, has_palette in ((60, False), (120, True)):
            await p.pilot.resize_terminal(width, 24)
            await p.pilot.pause()
            assert ("^p palette" in keys(p)) == has_palette
            assert "? Help q Quit" in keys(p)

    play(FakeMonitor(seen()), person, (120, 24))


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
