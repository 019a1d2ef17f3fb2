"""mpsbar doctor as a person types it, in real environments."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from functools import partial

import interpreters
import psutil
import pytest
from cli.command_kit import NO_ACTIVE_PYTHON, run_command
from fake_torch import make_torch, working
from schema_kit import read_json
from worker_kit import ATTACH, ROOT, TIMEOUT, need_module, wait_for

from mpsbar.core.machine import DeliveryCheck, IconCheck, Process
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.desktop.icon_visibility import write_icon
from mpsbar.desktop.notifications import write_delivery
from mpsbar.doctor import pythons as doctor_pythons
from mpsbar.doctor.rules import Device
from mpsbar.ui.text.alerts import say_delivery
from mpsbar.workers.environments import read_enabled

IDLE = "import time\nwhile True: time.sleep(0.05)\n"
# The whole of doctor looks at several Pythons, each of which imports torch on a busy machine.
LONG = 3 * TIMEOUT


@pytest.fixture
def env(workers):
    """Nothing but what a test names: no active environment, no enabled one, no python3."""
    return NO_ACTIVE_PYTHON | {"PYTHONPATH": None, "PATH": str(workers.folder)}


@pytest.fixture
def doctor(workers, env):
    return partial(run_command, workers, "doctor", seconds=LONG, **env)


@pytest.fixture
def venv(workers):
    """A venv with a torch of our making."""

    def make(name, code=None):
        folder = workers.folder / name
        base = interpreters.need(f"{sys.version_info[0]}.{sys.version_info[1]}")
        subprocess.run([base, "-m", "venv", "--without-pip", str(folder)], check=True)
        if code is not None:
            site = next(folder.glob("lib/python*/site-packages"))
            make_torch(site, code, packaged=None)
        return str(folder / "bin" / "python")

    return make


def test_a_named_python_that_is_well(doctor, venv):
    python = venv("good", working("2.14.0"))
    done = doctor("--python", python)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[2] == python
    assert "torch 2.14.0 · MPS available" in lines[3]
    assert lines[-1] == "No problems found."


@pytest.mark.parametrize("delivery", ["script", "shown"])
def test_alerts_that_may_not_be_visible_are_said(doctor, venv, workers, delivery):
    python = venv("good", working("2.14.0"))
    (workers.folder / "data").mkdir(exist_ok=True)
    write_delivery(DeliveryCheck(time.time(), delivery))
    words = say_delivery(delivery)
    assert (words in doctor("--python", python).stdout) == (delivery == "script")


def test_a_named_python_without_torch_is_exit_code_1(doctor, venv):
    done = doctor("--python", venv("bare"))
    assert done.returncode == 1
    assert "bare/bin/python: Python 3." in done.stdout
    assert ", no torch\n" in done.stdout


@pytest.mark.parametrize("python", ["/nowhere/python", "", "python-of-nobody"])
def test_a_named_python_that_is_none_is_exit_code_1(doctor, python):
    done = doctor("--python", python, "--json")
    (report,) = read_json("doctor", done.stdout)["pythons"]
    assert (done.returncode, done.stderr) == (1, "")
    # "unsafe": where the checkout lies below a folder that everyone can write to
    assert report["ended"] in ("no_python", "not_python", "unsafe")


def test_a_torch_that_crashes_is_exit_code_1_and_json_says_where(doctor, venv):
    done = doctor("--python", venv("bad", "import os; os.abort()"), "--json")
    (report,) = read_json("doctor", done.stdout)["pythons"]
    assert done.returncode == 1
    assert (report["ended"], report["stage"], report["signal"]) == ("crashed", "import", "SIGABRT")


def test_wrong_arguments_are_exit_code_2(doctor):
    done = doctor("--nope")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_help(doctor):
    assert "mpsbar doctor --python ~/venv/bin/python" in doctor("--help").stdout


def test_without_a_name_it_looks_at_all_it_can_know_of(doctor, venv, workers):
    need_module("torch")
    enabled, active, found = venv("enabled", working()), venv("active"), venv("found")
    (workers.folder / "data").mkdir()
    (workers.folder / "data" / "enabled.json").write_text(json.dumps({"pythons": [enabled]}))
    (workers.folder / "python3").symlink_to(found)
    worker = workers.start("import torch\n" + ATTACH + IDLE)
    done = doctor("--json", VIRTUAL_ENV=os.path.dirname(os.path.dirname(active)))
    report = read_json("doctor", done.stdout)
    pythons = {python["prefix"]: python["ended"] for python in report["pythons"]}
    ours = {str(workers.folder / name) for name in ("enabled", "active")}
    assert {pythons.pop(prefix) for prefix in ours} == {"ok", "no_torch"}
    assert pythons.pop(sys.prefix) == "ok"
    assert worker.process.poll() is None
    # The throwaways did not show up as workers.
    assert [path.name for path in workers.run_dir.glob("*.sock")] == [f"{worker.pid}.sock"]


def test_home_is_shown_short(doctor, venv, workers):
    python = venv("v", working("2.14.0"))
    assert doctor("--python", python, HOME=str(workers.folder)).stdout.splitlines()[2] == (
        "~/v/bin/python"
    )


def test_each_environment_once_by_its_own_path(venv, monkeypatch, workers):
    """A venv's python is a link: resolved, two venvs of one Python would be the same."""
    one, two = venv("one"), venv("two")
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(workers.folder / "data"))
    monkeypatch.setenv("VIRTUAL_ENV", str(workers.folder / "two"))
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setenv("PATH", "")
    torch = {"frameworks": ("torch",)}
    snapshot = Snapshot(
        0.0,
        (
            Worker(1, "a", "live", 0.0, executable=one, frameworks={"torch": "2.13"}),
            Worker(2, "b", "live", 0.0, executable="/mlx/python", frameworks={"mlx": "1"}),
        ),
        processes=(
            Process(1, 0.0, "a", python=one + "3", **torch),
            Process(3, 0.0, "c", python=None, **torch),
            Process(4, 0.0, "d", python="relative/python", **torch),
            Process(5, 0.0, "e", frameworks=("mlx",), python="/mlx/python"),
        ),
    )
    assert doctor_pythons.find_pythons(snapshot, read_enabled()) == [two, one, sys.executable]
    blind = Snapshot(0.0, processes=None)
    assert doctor_pythons.find_pythons(blind, read_enabled()) == [two, sys.executable]


def test_more_than_eight_are_counted_not_looked_at(doctor, workers, tmp_path, light_torch):
    nobody = [str(tmp_path / str(number) / "python") for number in range(10)]
    (workers.folder / "data").mkdir()
    (workers.folder / "data" / "enabled.json").write_text(json.dumps({"pythons": nobody}))
    report = read_json("doctor", doctor("--json", PYTHONPATH=light_torch).stdout)
    looked = [python["python"] for python in report["pythons"]]
    # Others may run torch on this machine, and theirs come first.
    assert len(looked) <= doctor_pythons.MAX_PYTHONS
    assert len(report["left_out"]) >= 2
    assert set(nobody) <= {*looked, *report["left_out"]}


def test_on_a_terminal_it_says_how_far_it_is_and_ctrl_c_ends_all(env, venv, workers):
    note = workers.folder / "pid"
    python = venv("slow", f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)")  # fmt: skip
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mpsbar", "doctor", "--python", python],
        env=workers.env(**env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=terminal, cwd=ROOT, text=True,
    )  # fmt: skip
    os.close(terminal)
    wait_for(lambda: note.exists() and note.read_text(), "torch")
    shown = b""
    while b"checking 1 Python: 0 done" not in shown:
        shown += os.read(controller, 4096)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out) == (130, "")
    os.close(controller)
    wait_for(lambda: has_ended(int(note.read_text())), "the end of its child")


def has_ended(pid):
    """Or waits for its parent, which may be the system's first process by now."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_ctrl_c_does_not_wait_for_what_hangs(monkeypatch):
    stopped = []

    def hang(python, stop):
        os.kill(os.getpid(), signal.SIGINT)
        stopped.append(stop.wait(TIMEOUT))
        return Device(python, "stopped")

    monkeypatch.setattr(doctor_pythons, "inspect_python", hang)
    with pytest.raises(KeyboardInterrupt):
        doctor_pythons.inspect_pythons(["/some/python"])
    # It may come while the pool is still starting the thread, which nobody waits for then.
    assert wait_for(lambda: stopped, "end of the look") == [True]


def test_the_monitor_itself_imports_no_torch(env, venv, workers):
    python = venv("v", working())
    code = (
        "import sys\nfrom mpsbar.cli.main import run\n"
        f"run(['doctor', '--json', '--python', {python!r}])\nprint('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=workers.env(**env),
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.stdout.endswith("\nFalse\n"), done.stderr


@pytest.mark.parametrize(
    ("doubt", "sentence"),
    [
        (None, "The menu bar icon is shown (last checked 20"),
        (
            "behind_notch",
            "The menu bar icon is behind the notch: quit other apps with menu bar icons (last",
        ),
    ],
)
def test_it_tells_what_the_app_saw_of_its_icon(doctor, venv, workers, monkeypatch, doubt, sentence):
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(workers.folder / "data"))
    write_icon(IconCheck(1_790_000_000.0, doubt, "details"))
    python = venv("v", working())
    assert sentence in doctor("--python", python).stdout
    assert json.loads(doctor("--json", "--python", python).stdout)["icon"]["doubt"] == doubt
