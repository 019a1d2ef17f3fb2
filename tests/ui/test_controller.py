"""What a click or a key does, played in both front ends: the same is asked, and the same is said."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from probe_samples import make_probe
from samples import GB, MAC, MB, SERVE, make_snapshot, make_training
from ui.fake_monitor import FakeMonitor
from ui.menubar_kit import MenuBarUser
from worker_kit import TIMEOUT, wait_for

from mpsbar.cli import main, probe
from mpsbar.core.actions import (
    AutoFreeRule,
    Command,
    Connect,
    Connected,
    FindTensors,
    Free,
    Freed,
    InspectPythons,
    Limit,
    Limited,
    ProbeDtypes,
    SetAutoFree,
    Stop,
    Stopped,
    Tensors,
)
from mpsbar.core.dtype_results import Progress
from mpsbar.core.errors import UserError
from mpsbar.core.machine import Process
from mpsbar.core.settings import Settings
from mpsbar.doctor.rules import DoctorReport
from mpsbar.ui.controller import Controller
from mpsbar.ui.rows import Row, UiState

SEEN = make_snapshot(
    make_training(), make_training(4712, "notebook kernel", 1400 * MB, 400 * MB), processes=(SERVE,)
)  # fmt: skip
BUSY_GPU = make_snapshot(
    make_training(process=Process(4711, 100.0, "train.py", ("torch",), gpu_percent=41.0)), processes=()
)  # fmt: skip
NO_MEMORY = replace(SEEN, machine=replace(MAC, pressure="critical"))

# What a person does: where to click in the menu, and which keys to press in the terminal.
WAYS = {
    "free": (("train.py", "Free Cache"), ("home", "f")),
    "free all": (("Free All Caches",), ("F",)),
    "stop": (("train.py", "Stop…"), ("home", "s")),
    "connect": (("serve.py", "Connect This Environment…"), ("end", "c")),
    "probe": (("Run dtype Probe",), ("p",)),
    "cancel": (("Probing… 1%",), ("p",)),
    "report": (("Open Report",), ("r",)),
    "copy": (("train.py", "Copy PID"), ("home", "y")),
    "watch": (("train.py", "Notify When Finished"), ("home", "n")),
    "limit": (
        ("train.py", "Limit Memory", "75% of Budget (20.2 GB)"), ("home", "l", "down", "down", "enter"),
    ),
    "no limit": (("train.py", "Limit Memory", "Off"), ("home", "l", "down", "enter")),  # from Custom, the last
    "own limit": (("train.py", "Limit Memory", "Custom…"), ("home", "l", "up", "enter")),
    "keep below": (
        ("train.py", "Keep Cache Below", "2.0 GB"),
        ("home", "a", *("down",) * 3, "enter", *("down",) * 3, "enter"),
    ),
    "free when idle": (
        ("train.py", "Free When Idle"), ("home", "a", *("down",) * 4, "enter"),
    ),
    "keep all below": (
        ("Settings", "Free Automatically", "Keep Cache Below", "4.0 GB"),
        ("A", "enter", *("down",) * 3, "enter"),
    ),
}  # fmt: skip
LIMITABLE = make_snapshot(make_training(methods=frozenset({"free", "tensors", "limit"})))


class InMenuBar:
    """A person at the AppKit double. Nothing is awaited: the double has a clock of its own."""

    def __init__(self, mac, monitor):
        self.mac, self.monitor, self.user = mac, monitor, MenuBarUser(mac, monitor)
        self.controller = self.user.app._controller

    async def do(self, what, answer=None):
        if answer:
            self.mac.answer(answer)
        self.user.click(*WAYS[what][0])

    async def type(self, what, texts):
        """One text after the other: each that is refused is asked for again."""
        for text in texts:
            self.mac.answer("Limit", text)
        self.user.click(*WAYS[what][0])
        self.mac.wait(1)

    async def look_at_tensors(self):
        with self.user.open("train.py"):
            pass
        with self.user.open("train.py", "Largest Tensors"):
            pass

    async def end(self, number, outcome):
        if isinstance(outcome, Connected):
            self.mac.answer("OK")
        self.user.end(number, outcome)
        self.mac.wait(1)

    async def show(self, seen):
        self.user.show(seen)

    async def wait_for(self, condition):
        self.mac.wait_for(lambda: self.mac.wait(0.1) or condition())

    def said(self):
        """Every question, notification and alert so far."""
        return [*self.mac.state.alerts, *(f"{t}: {x}" for t, x, _ in self.user.notices.told)]

    def play(self, story):
        def person():
            with pytest.raises(StopIteration):
                story(self).send(None)

        self.user.run(person)


class InTerminal:
    """A person at textual's pilot."""

    def __init__(self, monitor):
        self.monitor = monitor
        self.boxes = []

    async def do(self, what, answer=None):
        await self.p.press(*WAYS[what][1])
        if question := getattr(self.p.app.screen, "question", None):
            self.boxes.append(": ".join((question.title, *question.text.split("\n"))))
            while str(self.p.app.focused.label) != answer:
                await self.p.press("left")
            await self.p.press("enter")

    async def type(self, what, texts):
        await self.p.press(*WAYS[what][1])
        for text in texts:
            question = self.p.app.screen.question
            self.boxes.append(": ".join((question.title, question.text.replace("\n", " "))))
            await self.p.press(*("backspace",) * 10, *text, "enter")

    async def look_at_tensors(self):
        await self.p.press("home", "t", "escape")

    async def end(self, number, outcome):
        await self.p.end(number, outcome)

    async def show(self, seen):
        await self.p.show(seen)

    async def wait_for(self, condition):
        await self.p.wait_until(condition)

    def said(self):
        """Every question, and every line of the log."""
        return [*self.boxes, *(note.text for note in self.p.app.state.notes)]

    def play(self, story):
        from ui.terminal_kit import play

        async def person(p):
            self.p, self.controller = p, p.app._controller
            await story(self)

        play(self.monitor, person, (100, 30))


@pytest.fixture(params=["menubar", "terminal"])
def play(request):
    """Play a story at a machine that looks like this."""

    def play(seen, story):
        monitor = FakeMonitor(seen)
        if request.param == "menubar":
            person = InMenuBar(request.getfixturevalue("mac"), monitor)
        else:
            pytest.importorskip("textual")
            request.getfixturevalue("private")
            person = InTerminal(monitor)
        played = []

        async def whole(p):
            await story(p)
            played.append(True)

        person.play(whole)
        assert played
        return person

    return play


def asked(p):
    return [action for action, _ in p.monitor.asked]


def test_a_limit_is_explained_before_it_is_set(play):
    limit = Limit(4711, 27 * GB * 75 // 100)

    async def story(p):
        await p.do("limit", "Cancel")
        assert asked(p) == []
        await p.do("limit", "Limit")
        assert asked(p) == [limit]
        done = Limited(
            4711, "train.py", "done", limit.limit, limit.limit, held=3 * GB, freed=3 * GB
        )
        await p.end(0, done)
        question = " ".join(p.said()[1].split())
        assert question.startswith("Limit train.py to 20.2 GB?: Above the limit PyTorch first")
        assert "the run gets an out-of-memory error" in question
        assert question.endswith("It holds 6.0 GB now, 3.0 GB of that in live tensors.")
        told = "train.py: limited to 20.2 gb; it holds 3.0 gb; 3.0 gb of its cache was freed"
        assert p.said()[-1].lower() == told

    play(LIMITABLE, story)


def test_a_limit_is_taken_off_at_once(play):
    backend = replace(LIMITABLE.workers[0].backends[0], limit=9 * GB)
    worker = replace(LIMITABLE.workers[0], backends=(backend,))

    async def story(p):
        await p.do("no limit")
        assert asked(p) == [Limit(4711, None)]
        await p.end(0, Limited(4711, "train.py", "busy", None, reason="thread_computing"))
        told = "train.py: busy: another thread is computing; nothing was changed, try again"
        assert p.said()[-1].lower() == told

    play(replace(LIMITABLE, workers=(worker,)), story)


def test_a_limit_of_ones_own_is_typed_and_a_wrong_one_is_told(play):
    async def story(p):
        await p.type("own limit", ["24", "10 GB"])
        assert asked(p) == [Limit(4711, 10 * GB)]
        questions = [" ".join(text.split()) for text in p.said()[:2]]
        assert questions[0].startswith(
            "Limit the memory of train.py: A size, such as 24GB or 1500MB, or a percentage of Metal's "
            "budget of 27.0 GB, such as 75%."
        )
        assert "not a size: '24'; for example 24GB, 1500MB or 75%" in questions[1]

    play(LIMITABLE, story)


def test_automatic_frees_are_chosen_for_one_process_and_for_all(play):
    async def story(p):
        await p.do("keep below")
        await p.do("free when idle")
        assert p.monitor.chosen == [
            SetAutoFree(4711, 100.0, AutoFreeRule(keep_cache_below=2 * GB)),
            SetAutoFree(4711, 100.0, AutoFreeRule(free_when_idle=True)),
        ]
        await p.do("keep all below")
        assert p.monitor.settings.keep_cache_below == "4GB"
        assert p.controller.ui_state.settings.keep_cache_below == "4GB"

    play(LIMITABLE, story)


def test_free(play):
    async def story(p):
        await p.do("free")
        assert asked(p) == [Free(4711)]
        await p.end(0, Freed(4711, "train.py", "done", freed=3 * GB, seconds=0.04))
        await p.do("free")
        await p.end(1, Freed(4711, "train.py", "gone"))
        freed, ended = p.said()
        assert freed.lower() == "train.py: freed 3.0 gb in 40 ms"
        assert ended.lower() == "train.py: the process has ended"

    play(SEEN, story)


def test_free_all_sums_up_once_all_have_answered(play):
    def sums(p):
        return [text for text in p.said() if text.startswith("Freed ")]

    async def story(p):
        await p.do("free all")
        assert asked(p) == [Free(4711), Free(4712)]
        await p.end(0, Freed(4711, "train.py", "done", freed=GB, seconds=0.1))
        assert sums(p) == []
        await p.end(1, Freed(4712, "notebook kernel", "busy", reason="thread_computing"))
        (text,) = sums(p)
        assert text.startswith("Freed 1.0 GB from 1 of 2 processes")
        busy = "notebook kernel: busy: another thread is computing; nothing was freed"
        assert sum(busy in text for text in p.said()) == 1

    play(SEEN, story)


def test_stop_asks_first(play):
    async def story(p):
        await p.do("stop", "Cancel")
        assert asked(p) == []
        await p.do("stop", "Stop")
        assert asked(p) == [Stop(4711, 100.0, "train.py")]
        await p.end(0, Stopped(4711, "train.py", "another"))
        first, second, ended = p.said()
        assert first == second
        assert first.startswith(
            "Stop train.py (PID 4711)?: mpsbar will send it an interrupt (SIGINT)"
        )
        assert ended.lower() == "train.py: its pid now belongs to another process; nothing was sent"

    play(SEEN, story)


def test_connect_asks_first_and_shows_how_it_ended(play):
    async def story(p):
        await p.do("connect", "Cancel")
        assert asked(p) == []
        await p.do("connect", "Connect")
        assert asked(p) == [Connect("/v/bin/python")]
        await p.end(0, Connected("/v/bin/python", "enabled"))
        assert p.said()[0].startswith("Connect this environment?: /v/bin/python")
        assert p.said()[-1].startswith("Connected: /v/bin/python")
        assert "The agent answered." in p.said()[-1]

    play(SEEN, story)


@pytest.fixture
def in_menu_bar(mac):
    """For rows that the menu alone has."""

    def play(seen, story):
        InMenuBar(mac, FakeMonitor(seen)).play(story)

    return play


def test_a_python_of_the_list_is_connected_after_a_question(in_menu_bar):
    async def story(p):
        p.controller._set(replace(p.controller.ui_state, pythons=("/w/bin/python",), enabled=()))
        await p.show(SEEN)
        p.mac.answer("Connect")
        p.user.click("Connect an Environment", "/w/bin/python")
        assert asked(p) == [Connect("/w/bin/python")]
        await p.end(0, Connected("/w/bin/python", "enabled"))
        assert p.said()[0].startswith("Connect this environment?: /w/bin/python")
        assert p.said()[-1].startswith("Connected: /w/bin/python")

    in_menu_bar(SEEN, story)


def test_another_python_is_typed_and_a_wrong_path_is_told(in_menu_bar, tmp_path):
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text("")
    python.chmod(0o755)

    async def story(p):
        p.mac.answer("Connect", str(tmp_path / "nowhere"))
        p.mac.answer("Connect", str(python))
        p.user.click("Connect an Environment", "Other…")
        p.mac.wait(1)
        assert asked(p) == [Connect(str(python))]
        assert len(p.mac.state.alerts) == 2
        assert "nowhere" in p.mac.state.alerts[1]

    in_menu_bar(SEEN, story)


def test_nothing_is_connected_when_the_question_is_cancelled(in_menu_bar):
    async def story(p):
        p.mac.answer("Cancel", "/w/bin/python")
        p.user.click("Connect an Environment", "Other…")
        p.mac.wait(1)
        assert asked(p) == []

    in_menu_bar(SEEN, story)


def warn(seen, monkeypatch, capsys):
    """What the command says at this moment."""
    monkeypatch.setattr(probe, "read_snapshot", lambda: seen)
    arguments = ["probe", "--python", "/nobody/python"]
    with pytest.raises((UserError, SystemExit)) as caught:
        probe.run(main.build_parser(arguments).parse_args(arguments))
    text = str(caught.value) if caught.type is UserError else capsys.readouterr().err
    return text.splitlines()[0].removeprefix("mpsbar: ").split(";")[0]


def test_a_probe_asks_before_it_disturbs_a_run_in_the_words_of_the_command(
    play, monkeypatch, capsys
):
    sentence = warn(BUSY_GPU, monkeypatch, capsys)

    async def story(p):
        await p.do("probe", "Cancel")
        assert asked(p) == []
        await p.do("probe", "Run Probe")
        assert asked(p) == [ProbeDtypes()]
        assert p.said() == [f"Run the dtype probe now?: {sentence}."] * 2
        await p.end(0, make_probe())
        assert [text.lower() for text in p.said()[2:]] == ["dtype probe: as expected"]

    play(BUSY_GPU, story)


def test_a_probe_is_refused_when_memory_is_about_to_run_out(play, monkeypatch, capsys):
    sentence = warn(NO_MEMORY, monkeypatch, capsys)

    async def story(p):
        await p.do("probe", "OK")
        assert asked(p) == []
        (text,) = p.said()
        assert text.lower().startswith(f"can't run the probe now: {sentence}. try again later")

    play(NO_MEMORY, story)


def test_a_probe_is_cancelled(play):
    async def story(p):
        await p.do("probe")
        await p.show(replace(SEEN, pending=frozenset([ProbeDtypes()]), probing=Progress(1, 100)))
        await p.do("cancel")
        assert p.monitor.log[-1] == "cancel_probe"
        assert asked(p) == [ProbeDtypes()]

    play(SEEN, story)


@pytest.mark.parametrize("is_opened", [True, False])
def test_the_report_is_made_once_and_opened(play, is_opened):
    opened = []

    async def story(p):
        p.controller.front_end.open = lambda file: opened.append(file) or is_opened
        await p.do("report")
        assert p.controller.ui_state.is_reporting
        p.controller.perform(Command.OPEN_REPORT)  # as from a row that is a moment old
        assert asked(p) == [InspectPythons()]
        await p.end(0, DoctorReport(MAC))
        await p.wait_for(lambda: opened and not p.controller.ui_state.is_reporting)
        (file,) = opened
        assert "train.py" in file.read_text(encoding="utf-8")
        unopened = f"Report: {file} (couldn't open a browser)"
        await p.wait_for(lambda: (unopened in p.said()) is not is_opened)

    play(SEEN, story)


def test_tensors_are_counted_when_they_come_into_view_but_not_twice_at_once(play):
    async def story(p):
        await p.look_at_tensors()
        assert asked(p) == [FindTensors(4711)]
        await p.show(replace(SEEN, pending=frozenset([FindTensors(4711)])))
        await p.look_at_tensors()
        assert asked(p) == [FindTensors(4711)]
        await p.show(SEEN)
        await p.end(0, Tensors(4711, "busy", reason="main_computing"))

    person = play(SEEN, story)
    if isinstance(person, InTerminal):  # in the menu its own row says it
        assert person.said() == ["train.py: busy: the main thread is computing"]
    else:
        assert person.said() == []


def test_copy(play):
    copied = []

    async def story(p):
        p.controller.front_end.copy = copied.append
        await p.do("copy")

    play(SEEN, story)
    assert copied == ["4711"]


def test_notify_when_it_ends_and_no_longer(play):
    async def story(p):
        await p.do("watch")
        assert p.controller.ui_state.watched == {(4711, 100.0)}
        await p.do("watch")
        assert p.controller.ui_state.watched == frozenset()

    play(SEEN, story)


def test_a_failure_is_reported_and_the_next_click_works(play):
    async def story(p):
        perform = p.monitor.perform
        p.monitor.perform = lambda action: 1 / 0
        await p.do("free")
        p.monitor.perform = perform
        await p.do("free")
        p.monitor.asked[0][1].set_exception(OSError("no socket"))
        await p.wait_for(lambda: len(p.said()) == 2)
        for text, why in zip(
            p.said(), ("ZeroDivisionError: division", "OSError: no socket"), strict=True
        ):
            assert why in text
        await p.do("free")
        assert asked(p) == [Free(4711)] * 2

    play(SEEN, story)


def test_a_front_end_without_an_action_of_the_app_says_so():
    failures = []
    front_end = SimpleNamespace(notify_failure=lambda what, error: failures.append((what, error)))
    controller = Controller(FakeMonitor(SEEN), front_end, UiState(settings=Settings()))
    controller.click(Row("quit", "Quit mpsbar…", actions=(Command.QUIT,)))
    controller.close()
    ((what, error),) = failures
    assert what == "Quit mpsbar"
    assert isinstance(error, KeyError)


def test_what_ends_after_quit_is_not_shown_but_logged_if_it_failed(caplog):
    shown, is_running, goes_on = [], threading.Event(), threading.Event()
    front_end = SimpleNamespace(call_on_main=shown.append)
    controller = Controller(FakeMonitor(SEEN), front_end, UiState(settings=Settings()))

    def fail():
        is_running.set()
        assert goes_on.wait(TIMEOUT)
        raise OSError("no space left")

    controller.run("Finding Pythons", fail, shown.append)
    assert is_running.wait(TIMEOUT)
    controller.close()
    goes_on.set()
    wait_for(lambda: "Finding Pythons failed" in caplog.text, "a line of the log")
    assert shown == []
