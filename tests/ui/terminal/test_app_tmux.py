"""mpsbar top in a real terminal: tmux, real workers, real bytes freed, and its end."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import time

import psutil
import pytest
from worker_kit import ATTACH, ROOT, need_module, wait_for

pytest.importorskip("textual")
pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

IDLE = "import time\nwhile True: time.sleep(0.05)\n"
MLX = "import mlx.core as mx\nmx.set_cache_limit(1 << 30)\na = mx.ones((8 << 20,))\nmx.eval(a)\ndel a\n"
# Colours: those of the terminal's own 16, and any others.
SIXTEEN = re.compile(r"\x1b\[(?:[\d;]*;)?(?:3[0-7]|4[0-7]|9[0-7]|10[0-7])[;m]")
MORE = re.compile(r"\x1b\[(?:[\d;]*;)?[34]8;[25];")
# mpsbar that waits an hour for a worker's answer: what ends before that did not wait for it.
WAITS_LONG = """
import sys, types
from mpsbar.workers import request
for each in vars(request).values():
    if isinstance(each, types.FunctionType) and each.__defaults__:
        usual = each.__defaults__
        each.__defaults__ = tuple(3600.0 if x == request.ASK_SECONDS else x for x in usual)
request.ASK_SECONDS = 3600.0
from mpsbar.__main__ import main
main()
"""


class TmuxPane:
    def __init__(self, workers, size=(80, 24), **extra):
        self.socket = str(workers.folder / "tmux")
        self.written = workers.folder / "written"
        env = workers.env(PYTHONPATH=str(ROOT), LC_ALL="C.UTF-8", SHELL="/bin/sh", **extra)
        self.env = {
            key: value
            for key, value in env.items()
            if not key.startswith(("TMUX", "COLUMNS", "LINES"))
        }
        self.tmux("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "sleep 100000")
        self.tmux("set", "-g", "remain-on-exit", "on")
        self.tmux("pipe-pane", f"cat > {self.written}")

    def run(self, *command):
        self.tmux("respawn-pane", "-k", "-c", str(ROOT), sys.executable, "-m", "mpsbar", *command)

    def tmux(self, *words):
        command = ["tmux", "-S", self.socket, "-f", "/dev/null", *words]
        return subprocess.run(command, env=self.env, capture_output=True, text=True).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def wait(self, text, timeout=120.0):
        try:
            wait_for(lambda: text in self.screen(), text, timeout)
        except AssertionError as problem:
            raise AssertionError(f"{problem}:\n{self.screen()}") from None

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def click(self, words, text):
        """Click these words of the last line, until `text` is to be seen: the line is composed
        anew while rows come, and the click may meet something else, such as Stop and its question."""

        def click():
            line = self.screen().splitlines()[-1]
            if words not in line:
                return text in self.screen()  # it took longer than the last click was given
            for end in "Mm":  # what a terminal sends for a click: column and line from 1
                place = f"{line.index(words) + 1};{len(self.screen().splitlines())}"
                self.press("-l", f"\x1b[<0;{place}{end}")
            end = time.monotonic() + 5.0
            while text not in self.screen() and time.monotonic() < end:
                time.sleep(0.1)
            if text in self.screen():
                return True
            self.press("Escape")
            return False

        wait_for(click, text)

    def find(self, pid):
        """Show its row alone: others may run something here."""
        self.press("/", *str(pid))
        wait_for(lambda: f"\n{pid}" in self.screen(), "what was typed")
        self.press("Enter")
        self.wait("f Free")

    @property
    def pid(self):
        return int(self.tmux("display-message", "-p", "#{pane_pid}"))

    def run_in_shell(self, *command, program="-m mpsbar"):
        """Which tells its exit code: of a pane, tmux does not always know it."""
        line = f"{sys.executable} {program} {' '.join(command)}; echo CODE $?; sleep 100000"
        self.tmux("respawn-pane", "-k", "-c", str(ROOT), line)

    def wait_end(self):
        self.wait("CODE 0")


@pytest.fixture
def pane(workers, private):
    made = []

    def make(**extra):
        made.append(TmuxPane(workers, **extra))
        return made[-1]

    yield make
    for process in made:
        process.tmux("kill-server")


def test_free_a_real_cache_see_a_worker_die_and_quit(pane, workers):
    need_module("mlx")
    worker = workers.start(MLX + ATTACH + "print('attached', flush=True)\n" + IDLE)
    worker.wait_line("attached")
    worker.wait_asleep()  # a Free waits five seconds for a main that does not wait yet
    shown = pane()
    shown.run_in_shell("top", "--interval", "0.5")
    shown.wait("worker0.py")
    shown.wait("32.0 MB")
    shown.find(worker.pid)
    shown.press("f")
    shown.wait("worker0.py: freed 32.0 MB in")
    worker.end()
    shown.wait("worker0.py ended")
    shown.press("q")
    shown.wait_end()
    assert "Traceback" not in shown.screen()


def test_a_hung_worker_freezes_nothing_not_even_the_end(pane, workers):
    worker = workers.start(ATTACH + IDLE)
    shown = pane()
    program = workers.folder / "waits_long.py"
    program.write_text(WAITS_LONG)
    shown.run_in_shell("top", "--interval", "0.5", program=program)
    shown.wait("worker0.py")
    shown.find(worker.pid)
    worker.freeze()
    shown.press("f", "t")
    shown.wait("Counting…")
    shown.press("q")  # closes it; Escape and the next key at once would be Alt and that key
    shown.wait("busy")
    shown.press("?")
    shown.wait("free the selected process's cache")
    shown.press("q", "q")
    shown.wait_end()
    worker.thaw()


@pytest.mark.parametrize(
    ("extra", "has_colour"), [({}, True), ({"NO_COLOR": "1"}, False)], ids=["256", "NO_COLOR"]
)
def test_the_terminals_colours_or_none(pane, extra, has_colour):
    shown = pane(MPSBAR_REPLAY="m1max-64gb", **extra)
    shown.run("top")
    shown.wait("train.py")
    shown.press("Down", "?")
    shown.wait("free the selected")
    written = shown.written.read_text()
    assert bool(MORE.search(written)) == has_colour
    assert not SIXTEEN.search(written)


def is_small(screen):
    return "─ events" not in screen and "train.py" in screen


def test_it_follows_the_size_of_its_window(pane):
    shown = pane(MPSBAR_REPLAY="m1max-64gb", size=(80, 24))
    shown.run("top")
    shown.wait("─ events")
    assert "PEAK" not in shown.screen()
    widths = itertools.cycle(["160", "161"])  # a resize can be lost while it is still starting

    def grow():
        shown.tmux("resize-window", "-x", next(widths), "-y", "50")
        time.sleep(0.5)
        return "PEAK" in shown.screen()

    wait_for(grow, "PEAK")
    shown.tmux("resize-window", "-x", "30", "-y", "8")
    wait_for(lambda: is_small(shown.screen()), "a smaller screen")


@pytest.mark.parametrize(
    ("size", "panels"),
    [
        ((80, 24), {"processes", "memory", "events"}),
        ((120, 40), {"processes", "memory", "about", "events"}),
        ((200, 60), {"processes", "memory", "machine", "about", "events"}),
    ],
)
def test_panels_appear_as_the_window_grows_and_use_it(pane, size, panels):
    shown = pane(MPSBAR_REPLAY="m1max-64gb", size=size)
    shown.run("top")
    shown.wait("q Quit")
    wait_for(lambda: set(re.findall(r"╭─ (\w+) ", shown.screen())) == panels, "its panels")
    lines = shown.screen().splitlines()
    assert len(lines) == size[1]
    widest = max(lines, key=len)
    assert len(widest) == size[0]
    assert widest.endswith(("╮", "│", "╯"))


def test_over_ssh_in_a_terminal_of_its_own(pane, workers, ssh_hosts):
    """As people reach a Mac on the shelf: keys, the mouse and the window's size go through."""
    workers.start(ATTACH + IDLE)
    ssh_hosts.add("mini")
    shown = pane()
    line = f"ssh {ssh_hosts.options} -t mini mpsbar top; echo CODE $?; sleep 100000"
    shown.tmux("respawn-pane", "-k", line)
    shown.wait("worker0.py")
    shown.press("/", *"worker0")
    shown.wait("\nworker0")
    shown.press("Escape")
    shown.click("? Help", "free the selected process's cache")
    shown.press("Escape")
    wait_for(lambda: "free the selected" not in shown.screen(), "an end of the help")
    shown.tmux("resize-window", "-x", "130", "-y", "40")
    shown.wait("╭─ about")
    shown.press("q")
    shown.wait_end()


def test_mpsbar_alone_opens_it_and_the_mouse_works(pane):
    shown = pane(MPSBAR_REPLAY="m1max-64gb")
    shown.run()
    shown.click("? Help", "free the selected process's cache")


def test_a_terminal_that_goes_away_ends_it(pane):
    shown = pane(MPSBAR_REPLAY="m1max-64gb")
    shown.run("top")
    shown.wait("train.py")
    pid = shown.pid
    shown.tmux("kill-server")
    wait_for(lambda: not psutil.pid_exists(pid), "its end")


@pytest.mark.parametrize("moment", ["Starting", "q Quit"])
def test_the_demo_opens_it_and_ends_its_workers_with_the_terminal(pane, moment):
    from mpsbar.cli.demo import plan_workers

    if not plan_workers():
        pytest.skip("neither torch nor MLX is here")
    shown = pane()
    shown.run("demo")
    shown.wait(moment)
    root = psutil.Process(shown.pid)
    children = wait_for(root.children, "workers")
    shown.tmux("kill-server")
    wait_for(lambda: not any(child.is_running() for child in children), "the end of the workers")


def test_nothing_of_a_hostile_name_reaches_the_terminal(pane, workers):
    evil = workers.folder / "evil\x1b]0;owned\x07[red]x.py"
    evil.write_text(ATTACH + IDLE)
    workers.run([sys.executable, os.fspath(evil)]).wait_attached()
    shown = pane(size=(160, 40))  # wide enough for all of it
    shown.run("top")
    shown.wait("red]x.py")  # its end: the column is narrower under a parent that is shown too
    assert "owned\x07" not in shown.written.read_text()
    assert "\x1b]0;owned" not in shown.written.read_text()
