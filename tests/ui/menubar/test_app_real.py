"""Everything joined, for real: monitor, agents, torch and MLX workers, rumps; only AppKit is the double."""

import os
import re
import shlex
import signal
import subprocess
import sys

import pytest
from desktop_kit import StandIn
from ui.menubar_kit import CLOSED, Notices, full
from worker_kit import ATTACH, LONG_MOMENT, NO_MPS, ROOT, TIMEOUT, need_module

from mpsbar.core import alerts
from mpsbar.core.settings import LoadedSettings, Settings
from mpsbar.desktop import notifications
from mpsbar.monitor import Monitor

# On a Mac the ticking thread ends with the process; here it may find AppKit gone.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
IDLE = "import time\nwhile True: time.sleep(0.05)\n"
STRICT = {"SOFTMPS": "1", "SOFTMPS_STRICT": "1"}  # aborts when a release overlaps an op
MPS = """
import queue, torch
big = torch.ones(64 << 20, device="mps")
kept = torch.ones(10, device="mps")
del big
queue.Queue().get()
"""
MLX = """
import mlx.core as mx
mx.set_cache_limit(1 << 30)
a = mx.ones((32 << 20,))
mx.eval(a)
del a
"""


@pytest.fixture
def stage(mac, workers, calm_computer):
    """The app as `mpsbar` starts it, on this machine's own processes."""
    from mpsbar.system.single_instance import claim
    from mpsbar.ui.menubar.app import MenuBar

    class Stage:
        notices = Notices()
        monitor = Monitor(interval=0.2)

        def run(self, person):
            app = MenuBar(
                self.monitor, LoadedSettings(Settings(interval=0.5), ""), self.notices, claim()
            )

            def whole():
                person()
                mac.click("Quit mpsbar")

            mac.run(app.run, whole)

        def start(self, name, code, **extra):
            """Under a name that nobody else's process has; others may test here too."""
            script = workers.folder / f"{name}{os.getpid()}.py"
            script.write_text(code)
            return workers.run([sys.executable, str(script)], **extra).wait_attached()

        def worker(self, pid):
            return next((w for w in self.monitor.latest.workers if w.pid == pid), None)

        def wait_for(self, condition):
            mac.wait_for(condition, TIMEOUT)

        def click(self, start, *path):
            with mac.menu() as menu:
                for step in (start, *path[:-1]):
                    menu.enter(full(menu, step))
                menu.click(full(menu, path[-1]))
            mac.wait(CLOSED)  # a dialog opens once the menu has closed

    made = Stage()
    yield made
    made.monitor.close()


@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
def test_click_free_and_the_bytes_are_gone(mac, stage, workers):
    need_module("mlx")
    on_mps = stage.start("mps", "import torch\n" + LONG_MOMENT + ATTACH + MPS, **STRICT)
    on_mlx = stage.start("mlx", ATTACH + MLX + IDLE)

    def is_emptied(worker):
        """Its tensors are gone, its cache is not."""
        seen = stage.worker(worker.pid)
        if seen is None or seen.held is None or seen.cached is None:
            return False
        return seen.held - seen.cached < 16 << 20 and seen.cached >= 128 << 20

    def person():
        stage.wait_for(lambda: is_emptied(on_mps) and is_emptied(on_mlx))
        for worker in (on_mps, on_mlx):
            worker.wait_asleep()  # a Free waits five seconds for a main that does not wait yet
        before = stage.worker(on_mps.pid).held
        stage.click("mps", "Free Cache")
        stage.wait_for(lambda: stage.notices.told)
        title, text, key = stage.notices.told[0]
        assert (title, key) == (f"mps{os.getpid()}.py", f"freed-{on_mps.pid}")
        assert text.startswith("Freed 1.0 GB in ")
        stage.wait_for(lambda: stage.worker(on_mps.pid).held <= before - (1 << 30))
        stage.wait_for(lambda: on_mps.pid in stage.monitor.latest.freed)
        stage.wait_for(lambda: not stage.monitor.latest.pending)
        with mac.menu() as menu:
            assert "freed 1.0 GB in " in full(menu, "mps")
            assert is_emptied(on_mlx)  # nobody touched it
        with mac.menu() as menu:
            menu.click(full(menu, "Free All Caches"))
        stage.wait_for(lambda: stage.notices.told[-1][2] == "freed-all")
        assert stage.notices.told[-1][0].startswith("Freed 128 MB from 2 of 2 processes")
        stage.wait_for(lambda: stage.worker(on_mlx.pid).cached == 0)

    stage.run(person)
    assert on_mps.process.poll() is None
    assert on_mps.ask("stats")["backends"]["mps"]["reserved"] < 64 << 20


def test_tensors_stop_and_notify_when_it_ends(mac, stage, workers):
    code = "import torch\nbig = torch.zeros(1 << 20)\n" + ATTACH
    worker = stage.start("tensors", code + IDLE)

    def person():
        stage.wait_for(lambda: (seen := stage.worker(worker.pid)) and seen.process)
        with mac.menu() as menu:
            menu.enter(full(menu, "tensors"))

            def is_counted():
                """Opens the submenu anew: on a busy machine a count may be given up."""
                menu.enter("Largest Tensors")
                menu.wait(5)
                lines = menu.lines()
                menu.leave()
                return "4.0 MB  float32 1048576  cpu" in lines[0]

            stage.wait_for(is_counted)
        stage.click("tensors", "Notify When Finished")
        mac.answer("Stop")
        stage.click("tensors", "Stop…")
        stage.wait_for(lambda: worker.process.poll() is not None)
        stage.wait_for(lambda: stage.notices.told)
        assert stage.notices.told[0][0] == f"tensors{os.getpid()}.py ended"

    stage.run(person)
    assert worker.process.returncode == -signal.SIGINT


@pytest.mark.parametrize("is_app", [False, True], ids=["osascript", "UserNotifications"])
def test_an_end_that_was_no_normal_one_is_notified(
    mac, stage, workers, tmp_path, monkeypatch, is_app
):
    """Nobody asked for it: the exact end, by the real notifier down to macOS's own part of it."""
    monkeypatch.setattr(alerts, "MIN_FAILED_SECONDS", 0.0)  # a test runs for no minute
    if not is_app:
        monkeypatch.setattr(notifications, "read_bundle", lambda: None)
    program, log = StandIn(tmp_path, "osascript"), []
    stage.notices = notifications.make_notifier(log.append, "darwin", str(program.path))
    assert stage.notices.kind == ("UserNotifications" if is_app else "osascript")
    now = workers.folder / "now"
    wait = f"import os, time\nwhile not os.path.exists({str(now)!r}): time.sleep(0.05)\n"
    worker = stage.start(
        "failing", "import torch\n" + ATTACH + wait + "raise MemoryError('batch')\n"
    )

    def read_told():
        if is_app:
            return [(r.content().title(), r.content().body()) for r in mac.state.delivered]
        return [(call[-2].decode(), call[-1].decode()) for call in program.calls]

    def person():
        stage.wait_for(
            lambda: (seen := stage.worker(worker.pid)) and seen.process and seen.writes_exit_record
        )
        now.touch()
        stage.wait_for(read_told)
        (told,) = read_told()
        assert told[0] == f"failing{os.getpid()}.py ended"
        assert told[1].startswith(f"failing{os.getpid()}.py ran out of memory")

    stage.run(person)
    assert log == []


def test_a_hung_worker_never_freezes_the_menu(mac, stage, workers):
    """Stopped in its tracks: its Free ends some day, and meanwhile everything else is drawn."""
    worker = stage.start("hung", ATTACH + IDLE)

    def person():
        stage.wait_for(lambda: stage.worker(worker.pid))
        worker.freeze()
        stage.click("hung", "Free Cache")
        stage.wait_for(lambda: stage.worker(worker.pid).state == "busy")
        with mac.menu() as menu:
            menu.wait(0.6)
            assert "busy" in full(menu, "hung")
            assert "freeing…" in full(menu, "hung")
        worker.thaw()
        stage.wait_for(lambda: stage.notices.told)

    stage.run(person)


def test_connect_an_environment(mac, stage, workers, tmp_path, monkeypatch):
    """A process of a venv that is not connected, and the same after a click and a new start."""
    venv = tmp_path / "venv"
    command = [sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", venv]
    subprocess.run(command, check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    # The packages of this test's own environment, without running its .pth files.
    extra = "import site; site.ENABLE_USER_SITE = None\n"
    (site / "borrowed.pth").write_text(
        f"{extra}{os.path.dirname(os.path.dirname(torch_folder()))}\n"
    )
    script = tmp_path / f"mine{os.getpid()}.py"
    script.write_text("import torch\nprint('ready', flush=True)\n" + IDLE)
    start = [str(venv / "bin/python"), str(script)]
    env = workers.env(TORCH_DEVICE_BACKEND_AUTOLOAD="0")  # softmps is not in that environment
    env.pop("PYTHONPATH", None)
    first = subprocess.Popen(start, env=env, stdout=subprocess.PIPE, text=True)
    second = None
    try:
        assert first.stdout.readline() == "ready\n"

        def found():
            return [p for p in stage.monitor.latest.unconnected if p.pid == first.pid]

        def person():
            nonlocal second
            stage.wait_for(lambda: found() and stage.monitor._wakes.put(None) is None)
            mac.answer("Connect")
            mac.answer("OK")
            stage.click("mine", "Connect This Environment…")
            stage.wait_for(lambda: mac.wait(0.2) or len(mac.state.alerts) == 2)
            assert mac.state.alerts[1].startswith(f"Connected: {venv}/bin/python")
            assert "Restart the process for this to take effect" in mac.state.alerts[1]
            second = subprocess.Popen(start, env=env, stdout=subprocess.DEVNULL)
            stage.wait_for(lambda: stage.worker(second.pid))

        stage.run(person)
    finally:
        for process in filter(None, (first, second)):
            process.kill()
            process.wait()
        first.stdout.close()


def torch_folder():
    import importlib.util

    return importlib.util.find_spec("torch").origin


@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
def test_the_first_part_of_the_checklist_in_its_order(mac, stage, workers):
    """With its own worker; what a person sees on a Mac is here what the double shows."""
    text = (ROOT / "packaging/MAC_CHECKLIST.md").read_text()
    (line,) = re.findall(r"^mpsbar run python .*$", text, re.MULTILINE)
    words = shlex.split(line)
    assert "1 << 28" in words[-1]
    code = words[-1].replace("1 << 28", "135 << 20")  # half a GB is enough for a heap of its own
    command = [sys.executable, "-m", "mpsbar", "run", sys.executable, "-c", code]
    worker = workers.run(command, **STRICT).wait_attached()
    keyboard = mac.state.single

    def person():
        mac.wait(2)
        assert mac.item().button().image().isTemplate()  # 1
        assert not keyboard["application"].isActive()
        stage.wait_for(lambda: (stage.worker(worker.pid) or Nothing).cached)  # 2
        worker.wait_asleep()
        before = stage.worker(worker.pid).held
        stage.wait_for(free)  # 3
        stage.wait_for(lambda: before - stage.worker(worker.pid).held > 500 << 20)
        row = name_of_the_row()
        stage.click(row, "Copy PID")  # 10
        assert NSPasteboard.generalPasteboard().stringForType_(NSPasteboardTypeString) == str(
            worker.pid
        )
        stage.click(row, "Notify When Finished")
        worker.end()
        stage.wait_for(lambda: [title for title, _, _ in stage.notices.told if "ended" in title])
        stage.click("Settings", "Open at Login")  # 12
        stage.wait_for(lambda: "✓ Open at Login" in show_settings())

    def free():
        """Clicked until it is done: on busy cores main may come by too late."""
        number = len(stage.notices.told)
        stage.click(name_of_the_row(), "Free Cache")
        stage.wait_for(lambda: len(stage.notices.told) > number)
        return stage.notices.told[-1][1].startswith("Freed ")

    def name_of_the_row():
        """Without its figures: they change between two clicks."""
        with mac.menu() as menu:
            (row,) = [title for title in menu.titles() if "mps" in title.split("\t")]
        return row.removeprefix("└ ").split("\t")[0] + "\t"

    def show_settings():
        with mac.menu("Settings") as menu:
            return menu.lines()

    from AppKit import NSPasteboard, NSPasteboardTypeString

    stage.run(person)


class Nothing:
    cached = None
