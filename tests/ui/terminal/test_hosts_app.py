"""`mpsbar top --host` on the screen: hosts that answer, are silent, or never did; free; filter."""

import asyncio
import contextlib
import threading
import time
from dataclasses import replace

import pytest
from samples import GB, SERVE, make_snapshot, make_training
from ui.terminal.top_kit import SINCE
from ui.terminal_kit import ScreenUser, run_app
from worker_kit import TIMEOUT

from mpsbar.core.errors import UserError
from mpsbar.core.host_readings import HostReading, RemoteStatus
from mpsbar.core.machine import Process
from mpsbar.core.progress import RunBar, RunProgress
from mpsbar.core.settings import Settings
from mpsbar.system.settings_file import read_settings
from mpsbar.ui.terminal.hosts_app import HostsApp
from mpsbar.ui.terminal.hosts_state import HostsState

TUNE = Process(99, 5.0, "tune.py", ("torch",), footprint=8 * GB)


def make_readings(**more):
    """Three hosts: a good one, one that fell silent, one that never answered."""
    snapshot = make_snapshot(make_training())
    other = replace(
        snapshot, workers=(make_training(pid=99, name="tune.py", process=TUNE),), processes=(SERVE,)
    )
    return [
        HostReading("studio1", RemoteStatus(snapshot, "ok", ()), SINCE),
        HostReading("studio2", RemoteStatus(other, "warning", ("Memory is short",)), SINCE, **more),
        HostReading("mini", problem="Connection\x1b[2J refused"),
    ]


def play(readings, person, free=None, size=(110, 24)):
    async def whole():
        app = HostsApp(lambda: readings[-1], free or (lambda *_: ""), Settings())
        async with run_app(app, size, notifications=True) as pilot:
            user = ScreenUser(app, pilot)
            await user.wait_for("hosts answer")
            await person(user)

    asyncio.run(whole())


def find_line(p, *texts):
    found = [line for line in p.screen().split("\n") if all(text in line for text in texts)]
    assert len(found) == 1, (texts, p.screen())
    return found[0]


def test_all_hosts_and_their_processes():
    """A silent host's rows stay, and say since when; the others go on."""
    at = time.strftime("%H:%M:%S", time.localtime(SINCE))

    async def person(p):
        await p.wait_for("tune.py")
        assert "mpsbar  1 of 3 hosts answer · 1 process · 6.0 GB held" in p.screen()
        good = find_line(p, "studio1", "of 36.0 GB")
        assert "████▋░░░░░░ 24.0 of 36.0 GB ████" in good
        assert "░  43%    6.0 GB    1" in good
        assert f"no answer since {at}" in find_line(p, "studio2", "43%")
        assert "(Connection timed out)" in " ".join(p.screen().split())
        assert "no answer (Connection�[2J refused)" in find_line(p, "mini")
        assert "no answer" not in find_line(p, "studio1", "train.py")
        assert f"no answer since {at}" in find_line(p, "studio2", "tune.py")
        assert f"no answer since {at}" in find_line(p, "studio2", "serve.py")
        assert "\x1b" not in p.screen()

    play([make_readings(problem="Connection timed out")], person, size=(130, 24))


def test_a_host_that_answers_again_is_shown_so():
    readings = [make_readings(problem="Connection timed out")]

    async def person(p):
        await p.wait_for("no answer since")
        readings.append(make_readings())
        await p.wait_gone("no answer since")
        assert "2 of 3 hosts answer · 3 processes · 12.0 GB held" in p.screen()
        assert "Memory is short" in find_line(p, "studio2", "43%")
        old = p.style_of("tune.py").color
        readings.append(make_readings(problem="Connection timed out"))
        quiet = p.app.palette.style("quiet").color
        await p.wait_until(lambda: p.style_of("tune.py").color == quiet != old)

    play(readings, person)


def test_one_host_alone_filter_and_order():
    async def person(p):
        await p.wait_for("tune.py")
        await p.press("slash", *"studio2", "enter")
        await p.wait_gone("train.py")
        assert "tune.py" in p.screen()
        await p.press("escape")
        await p.wait_for("train.py")
        await p.press("up", "enter")
        await p.wait_for("processes of studio1")
        assert "tune.py" not in p.screen()
        await p.press("enter")
        await p.wait_for("processes of all hosts")
        await p.press("shift+tab", "down", "enter")  # in the table of hosts
        await p.wait_for("processes of studio2")
        await p.press("escape", "o", "o", "o", "o")
        await p.wait_for("NAME▲")
        names = [line for line in p.screen().split("\n") if ".py" in line]
        found = [word for line in names for word in line.split() if word.endswith(".py")]
        assert found == ["serve.py", "train.py", "tune.py"]

    play([make_readings()], person)


def test_a_cache_is_freed_on_the_host_of_the_row():
    asked, may_end = [], threading.Event()

    def free(*what):
        asked.append(what)
        may_end.wait(TIMEOUT)
        return f"{what[0]}: freed 3.0 GB [bold]really[/bold]"

    async def person(p):
        await p.wait_for("tune.py")
        await p.press("down", "f")
        await p.wait_for("studio2: freeing…")
        assert "train.py" in p.screen()  # it waits for nothing
        may_end.set()
        await p.wait_for("freed 3.0 GB [bold]really[/bold]")
        await p.press("F")
        await p.wait_until(lambda: len(asked) == 2)
        assert asked == [("studio2", 99, 5.0), ("studio2", None, None)]

    play([make_readings()], person, free)


def test_small_windows_and_the_help():
    async def person(p):
        await p.wait_for("studio1")
        await p.press("question_mark")
        await p.wait_for("free the selected")
        await p.press("escape")
        await p.wait_gone("free the selected")

    for size in ((40, 10), (40, 12), (60, 16), (200, 50)):
        play([make_readings()], person, size=size)


def test_nothing_is_done_behind_the_help():
    asked = []

    async def person(p):
        await p.wait_for("tune.py")
        await p.press("question_mark")
        await p.wait_for("free the selected")
        await p.press("slash", "x", "enter", "f", "F", "o")
        assert "free the selected" in p.screen()
        await p.press("escape")
        await p.wait_gone("free the selected")
        assert not p.app.query_one("#filter").display
        assert "▲" not in p.screen()
        assert asked == []
        await p.press("f")
        await p.wait_for("done it")
        assert asked == [("studio1", 4711, 100.0)]

    play([make_readings()], person, lambda *what: asked.append(what) or "done it")


def test_nothing_is_freed_on_a_host_that_is_silent():
    """Its rows are old: a pid of them may be another process by now."""
    asked = []
    at = time.strftime("%H:%M:%S", time.localtime(SINCE))

    async def person(p):
        await p.wait_for("tune.py")
        await p.press("down", "f")
        await p.wait_for(f"studio2: no answer since {at}")
        await p.press("F")
        await p.press("up", "f")
        await p.wait_for("done it")
        assert asked == [("studio1", 4711, 100.0)]

    readings = make_readings(problem="Connection timed out")
    play([readings], person, lambda *what: asked.append(what) or "done it")


def test_memory_and_gpu_of_each_host_over_time_beside_one_another():
    """What was read before stays as a history, as high as there is room."""
    readings = [make_readings()]
    now = time.time()

    def read(step):
        snapshot = make_snapshot(make_training())
        gpu = replace(snapshot.machine.gpu, utilization=min(100.0, 10.0 * step))
        machine = replace(snapshot.machine, gpu=gpu, memory_available=(30 - 2 * step) * GB)
        status = RemoteStatus(replace(snapshot, machine=machine), "ok", ())
        return [HostReading(name, status, now + 4 * step) for name in ("a", "b")]

    async def person(p):
        for step in range(12):
            readings.append(read(step))
            p.app._take()
            await p.pilot.pause()
        lines = p.screen().split("\n")
        at = next(number for number, line in enumerate(lines) if line.startswith("│a "))
        assert "██████" in lines[at]
        assert "▁▂" in lines[at + 2] or "▂▃" in lines[at + 2], p.screen()
        assert lines[at + 1].count("█") > 0
        assert lines[at + 2].count("█") > lines[at + 1].count("█")
        assert lines[at + 3].strip("│ ") == ""
        assert lines[at + 4].startswith("│b ")
        assert "train.py  ■ allocated 3.0 GB" in p.screen()  # the chart of what is selected

    play(readings, person, size=(160, 50))


def test_the_runs_of_each_host_and_how_far_they_are():
    run = RunProgress(RunBar("epoch 3", 620, 1000, "it", 3.1, 120.0))
    snapshot = make_snapshot(make_training(progress=run))
    reading = HostReading("studio1", RemoteStatus(snapshot, "ok", ()), SINCE)

    async def person(p):
        await p.wait_for("train.py         ━━━━━─── 62%")

    play([[reading]], person, size=(160, 24))


def test_what_is_offered_is_what_works():
    """No Free for a process that is not connected; ssh's question where there is one."""
    asked = []
    readings = make_readings()
    readings[2] = replace(readings[2], needs_person=True)

    async def person(p):
        await p.wait_for("tune.py")
        await p.wait_for("mini: ssh has a question")
        await p.wait_for("f Free")
        assert "c Answer ssh" not in p.screen()
        await p.press("down", "down")  # serve.py
        await p.wait_gone("f Free ")
        await p.press("f")
        assert asked == []
        await p.press("shift+tab", "end")
        await p.wait_for("c Answer ssh")
        await p.press("c")
        await p.wait_for("ssh can't use this terminal")  # Pilot's has nothing to give

    play([readings], person, lambda *what: asked.append(what) or "")


def test_a_click_on_a_head_sorts():
    async def person(p):
        await p.wait_for("tune.py")
        lines = p.screen().split("\n")
        y = next(number for number, line in enumerate(lines) if "PID NAME" in line)
        await p.pilot.click(offset=(lines[y].index("NAME"), y))
        await p.wait_for("NAME▲")
        await p.pilot.click(offset=(lines[y].index("NAME"), y))
        await p.wait_for("NAME▼")
        await p.press("O")
        await p.wait_for("NAME▲")

    play([make_readings()], person)


def test_64_hosts_are_64_lines():
    """Every host is a line where there are many; and none of them is drawn again for nothing."""
    snapshot = make_snapshot(*(make_training(pid=n + 1) for n in range(20)))
    status = RemoteStatus(snapshot, "ok", ())
    many = [HostReading(f"mac{n:02}", status, SINCE) for n in range(64)]
    readings = [many]

    async def person(p):
        await p.wait_for("mac10")
        await p.wait_for("64 of 64 hosts answer · 1280 processes")
        p.app._show()  # by now it is laid out, with its scrollbar
        before = dict(p.app._drawn)
        readings.append([replace(many[0]), *many[1:]])
        p.app._take()
        new = [key for key, kept in p.app._drawn.items() if kept[2] is not before[key][2]]
        assert {key.partition("/")[0] for key in new} == {"mac00"}
        assert len(p.app._drawn) < 64 + 5 * 40  # processes only where they are to be seen
        await p.press("end")
        await p.wait_for("mac63    20 train.py")
        await p.press("home")
        await p.wait_for("mac00     1 train.py")
        p.app.main_table.scroll_to(y=600, animate=False, force=True)
        await p.wait_for("mac30 ")

    play(readings, person, size=(120, 40))


def test_the_selected_process_has_a_chart_however_many_hosts_there_are():
    state = HostsState()
    workers = tuple(make_training(pid=n + 1) for n in range(20))

    def take(at):
        status = RemoteStatus(make_snapshot(*workers), "ok", ())
        state.update([HostReading(f"mac{n:02}", status, at) for n in range(64)])

    take(SINCE)
    state.selected = "mac63/process-20"
    take(SINCE + 2)
    take(SINCE + 4)
    assert [point.time for point in state.series.held] == [SINCE + 2, SINCE + 4]
    followed = [key for each in state.snapshots.values() for key in each.process_series]
    assert followed == [20]


def test_why_there_are_no_processes():
    empty = HostReading("studio1", RemoteStatus(make_snapshot(), "ok", ()), SINCE)
    readings = [[HostReading("studio1")]]

    async def person(p):
        await p.wait_for("connecting…")
        assert "processes running" not in p.screen()
        readings.append([empty])
        await p.wait_for("You have no PyTorch or MLX processes running.")
        readings.append(make_readings())
        await p.wait_for("train.py")
        await p.wait_gone("processes running")
        await p.press("slash", *"zz", "enter")
        await p.wait_for("No rows contain “zz” (Esc shows all)")
        await p.press("f", "enter", "down")  # on nothing
        await p.press("escape")
        await p.wait_for("train.py")
        await p.wait_gone("No rows contain")

    play(readings, person)


def test_escape_is_offered_where_something_is_hidden():
    async def person(p):
        await p.wait_for("f Free")
        assert "Esc All" not in p.screen()
        await p.press("enter")
        await p.wait_for("Esc All")
        await p.press("escape")
        await p.wait_gone("Esc All")
        await p.press("slash", *"tune", "enter")
        await p.wait_for("Esc All")
        await p.press("escape", "slash", "enter")  # nothing was typed
        await p.wait_gone("Esc All")
        await p.wait_until(lambda: not p.app.filter_field.display)

    play([make_readings()], person)


def test_no_word_of_a_long_complaint_is_lost_where_there_is_room():
    """Korean letters take two cells each."""
    words = (
        "호스트가 응답하지 않습니다: 연결 시간이 초과되었습니다. 네트워크와 방화벽을 확인하십시오."
    )
    silent = [HostReading("mini", problem=words), HostReading("studio", problem="x")]

    async def person(p):
        for word in words.split():
            await p.wait_for(word)

    play([silent], person, size=(160, 40))


def test_an_ssh_that_cannot_be_started_is_told():
    """The screen stays: it is given to ssh, and comes back."""

    def fail(*_what):
        raise UserError("ssh is not installed here")

    readings = make_readings()
    readings[2] = replace(readings[2], needs_person=True)

    async def person(p):
        await p.wait_for("f Free")
        await p.press("f")
        await p.wait_for("studio1: ssh is not installed here")
        p.app._ask, p.app.suspend = fail, contextlib.nullcontext  # Pilot's terminal has no such
        await p.press("shift+tab", "end", "c")
        await p.wait_for("mini: ssh is not installed here")

    play([readings], person, fail)


def test_themes_and_the_command_palette(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path))

    async def person(p):
        await p.wait_for("tune.py")
        looks = {p.app.export_screenshot()}
        for theme in ("mpsbar-light", "mpsbar-contrast"):
            p.app.theme = theme
            await p.wait_until(lambda: p.app.export_screenshot() not in looks)
            assert "tune.py" in p.screen()
            looks.add(p.app.export_screenshot())
        await p.press("ctrl+p", *"theme")
        await p.wait_for("Change the current theme")
        await p.press("escape")
        await p.wait_gone("Change the current theme")
        await p.wait_for("f Free")

    play([make_readings()], person)


def test_a_theme_that_is_chosen_is_kept(tmp_path, monkeypatch):
    """Also where the app ends right after that."""
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path))

    async def person(p):
        p.app.theme = "mpsbar-light"
        await p.pilot.pause()
        p.app.theme = "textual-dark"  # of textual's own, which is not kept
        await p.pilot.pause()

    play([make_readings()], person)
    assert read_settings().settings.theme == "light"


def test_a_theme_that_cannot_be_saved_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path))
    (tmp_path / "settings.toml").write_text("theme = ")

    async def person(p):
        p.app.theme = "mpsbar-light"
        await p.wait_for("is damaged")

    play([make_readings()], person)
    assert (tmp_path / "settings.toml").read_text() == "theme = "


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_the_stored_pictures(size, check_golden):
    """By textual itself; `pytest --golden` writes them anew."""
    import textual

    if not textual.__version__.startswith("8.2."):
        pytest.skip("they were made by textual 8.2")
    names = {"studio1": "train.py", "studio2": "generate.py", "mini-3": "eval.py"}
    readings = [[]]

    def read(step):
        found = []
        for place, (host, name) in enumerate(names.items()):
            run = RunProgress(RunBar("epoch 3", 200 + 7 * step, 1000, "it", 3.1, 120.0 + place))
            held = (4 + place) * GB + step * GB // 20
            worker = make_training(name=name, held=held, progress=run)
            snapshot = make_snapshot(worker, processes=(SERVE,))
            gpu = replace(snapshot.machine.gpu, utilization=25.0 * place + step % 30)
            available = (30 - 6 * place) * GB - step * GB // 10
            machine = replace(snapshot.machine, gpu=gpu, memory_available=available)
            level, reasons = ("warning", ("Memory pressure is high",)) if place == 2 else ("ok", ())
            status = RemoteStatus(replace(snapshot, machine=machine), level, reasons)
            found.append(HostReading(host, status, SINCE + 2 * step))
        return [*found, HostReading("mini-4", problem="Connection refused")]

    async def person(p):
        for step in range(60):
            readings.append(read(step))
            p.app._take()
        await p.wait_for("f Free")
        await p.pilot.pause()
        p.app._show()
        await p.pilot.pause()
        check_golden(f"hosts-{size[0]}x{size[1]}.svg", p.app.export_screenshot() + "\n")

    play(readings, person, size=size)
