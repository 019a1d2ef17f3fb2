"""The dtype probe in the menu: asked first, shown with its progress, cancelled, told when it ends."""

import json
import sys

import pytest
from probe_samples import make_probe
from samples import MAC, make_snapshot, make_training
from ui.fake_monitor import FakeMonitor
from ui.menubar_kit import MenuBarUser, Notices, full
from worker_kit import TIMEOUT

from mpsbar.core.actions import ProbeDtypes
from mpsbar.core.dtype_results import Check, Probe, Progress
from mpsbar.core.machine import Machine
from mpsbar.core.settings import LoadedSettings, Settings
from mpsbar.monitor import Monitor
from mpsbar.system import child_process

PENDING = frozenset([ProbeDtypes()])


def play(mac, seen, person):
    user = MenuBarUser(mac, FakeMonitor(seen))
    user.run(lambda: person(user))
    assert mac.state.changed_while_open == []
    return user


def dtype_lines(user):
    lines = user.lines()
    at = next(number for number, line in enumerate(lines) if "dtypes: " in line)
    return lines[at : at + 2]


def test_run_progress_and_end(mac):
    good = make_probe()

    def person(user):
        assert dtype_lines(user) == ["(dtypes: not probed yet)", "Run dtype Probe"]
        user.click("Run dtype Probe")
        assert user.monitor.asked[0][0] == ProbeDtypes()
        user.show(make_snapshot(make_training(), pending=PENDING))
        assert dtype_lines(user)[1] == "(Probing…)"
        with user.open() as menu:
            user.show(make_snapshot(make_training(), pending=PENDING, probing=Progress(42, 100)))
            assert "Probing… 42%  (Cancel)" in menu.lines()
        user.end(0, good)
        user.show(make_snapshot(make_training(), dtypes=good))
        assert user.notices.told == [("dtype probe", "As expected", "probe")]
        assert dtype_lines(user) == ["dtypes: as expected  ▸", "Run dtype Probe"]
        table = user.lines("dtypes: ")
        assert table[0] == "(torch 2.13.0 · mps · /venv/bin/python)"
        assert len(table) == 1 + len(good.dtypes)
        assert any(line.startswith("(bfloat16       supported") for line in table)

    play(mac, make_snapshot(make_training()), person)


def test_a_silent_bug_is_the_headline(mac):
    bad = make_probe(wrong={"argmax": Check("argmax", "wrong", "7 is not 8")})

    def person(user):
        assert dtype_lines(user)[0].startswith("dtypes: WRONG RESULTS without an error: ")

    play(mac, make_snapshot(make_training(), dtypes=bad), person)


def test_cancel(mac):
    def person(user):
        user.click("Run dtype Probe")
        user.show(make_snapshot(make_training(), pending=PENDING, probing=Progress(1, 100)))
        user.click("Probing… 1%")
        assert user.monitor.log[-1] == "cancel_probe"
        user.end(0, make_probe(ended="cancelled"))
        assert user.notices.told == []

    play(mac, make_snapshot(make_training()), person)


def test_it_asks_before_it_disturbs_a_run(mac):
    busy = make_training()
    process = busy.process.__class__(4711, 100.0, "train.py", ("torch",), gpu_percent=41.0)

    def person(user):
        mac.answer("Cancel")
        user.click("Run dtype Probe")
        assert user.monitor.asked == []
        mac.answer("Run Probe")
        user.click("Run dtype Probe")
        assert [action for action, _ in user.monitor.asked] == [ProbeDtypes()]
        assert mac.state.alerts[0] == (
            "Run the dtype probe now?: train.py is using 41% of the GPU: it and the probe would slow each other down."
        )

    seen = make_snapshot(make_training(process=process))
    play(mac, seen, person)


def test_it_refuses_when_memory_is_about_to_run_out(mac):
    machine = Machine(
        **{f: getattr(MAC, f) for f in ("chip", "memory_total", "gpu")}, pressure="critical"
    )

    def person(user):
        user.monitor.latest = user.monitor.latest.__class__(1000.0, machine=machine)
        mac.answer("OK")
        user.click("Run dtype Probe")
        assert user.monitor.asked == []
        assert mac.state.alerts[0].startswith(
            "Can't run the probe now: Memory pressure is critical"
        )

    play(mac, make_snapshot(make_training()), person)


def test_a_python_without_torch_is_one_sentence(mac):
    def person(user):
        user.click("Run dtype Probe")
        user.end(0, Probe("/usr/bin/python3", "no_torch"))
        assert user.notices.told[0][1].startswith("/usr/bin/python3 has no torch")

    play(mac, make_snapshot(), person)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_for_real(mac, workers, calm_computer, monkeypatch):
    """A real probe of this Python on the CPU, from a click to the table and the kept result."""
    from fork_server import fork_children

    from mpsbar.system.paths import probe_folder
    from mpsbar.system.single_instance import claim
    from mpsbar.ui.menubar.app import MenuBar

    monkeypatch.setattr("mpsbar.doctor.pythons.find_pythons", lambda *_: [sys.executable])
    monitor, notices = Monitor(interval=0.3), Notices()
    # Other torch processes of this machine were not probed; theirs would be "not probed yet".
    monkeypatch.setattr(
        "mpsbar.dtypes.results._find_interpreters", lambda _: [(sys.executable, None)]
    )
    monkeypatch.setattr(child_process, "start_python", fork_children())
    app = MenuBar(monitor, LoadedSettings(Settings(interval=0.5), ""), notices, claim())
    seen = set()

    def person():
        mac.wait_for(lambda: monitor.latest.machine.memory_total, TIMEOUT)
        mac.click("Run dtype Probe")

        def has_ended():
            with mac.menu() as menu:
                seen.update(line for line in menu.lines() if "Probing…" in line)
            return notices.told

        mac.wait_for(has_ended, TIMEOUT)
        mac.wait_for(lambda: monitor.latest.dtypes is not None, TIMEOUT)
        with mac.menu() as menu:
            menu.enter(full(menu, "dtypes: "))
            assert any(line.startswith("(float32        supported") for line in menu.lines())
        mac.click("Quit mpsbar")

    mac.run(app.run, person)
    monitor.close()
    assert notices.told[0][0] == "dtype probe"
    assert seen  # it was there to be seen while it ran
    (kept,) = probe_folder().glob("*.json")
    assert json.loads(kept.read_text())["device"] == "cpu"
