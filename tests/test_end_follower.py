"""From an end to what is shown: a Mac's late report corrects the row, a GPU reset is told, history keeps it."""

import json
from dataclasses import replace
from datetime import datetime

import pytest
from samples import GB, MAC, make_process, make_snapshot, make_training
from system.macos.test_reports import ABORT, ENDED, STARTED, read

from mpsbar.core.actions import Stopped, WatchEnd
from mpsbar.core.alerts import MIN_FAILED_SECONDS, Alerts
from mpsbar.core.endings import Exit, ExitStatus
from mpsbar.core.gpu import Gpu
from mpsbar.core.process_tracker import ProcessTracker
from mpsbar.end_follower import EndFollower
from mpsbar.system.macos.reports import MacReports
from mpsbar.system.platform import Details, NoExitWatch


class Watch(NoExitWatch):
    def __init__(self):
        self.exits, self.running = [], set()

    def add(self, pid, started):
        self.running.add((pid, started))
        return True

    def poll(self):
        found, self.exits = self.exits, []
        return found

    def is_running(self, pid, started):
        return (pid, started) in self.running


class Mac:
    """The parts of a Computer that ends need; the folders of reports are real ones."""

    is_mac = True

    def __init__(self, folder):
        self.watch = Watch()
        self.user = folder / "home/Library/Logs/DiagnosticReports"
        self.user.mkdir(parents=True)
        (folder / "system").mkdir()
        self._reports = MacReports(folder / "home", folder / "system")
        self.boot = None
        self.details = Details(STARTED, 1, ("sleep",))

    def watch_exits(self):
        return self.watch

    def read_reports(self):
        return self._reports

    def read_boot(self):
        return self.boot

    def read_details(self, pid):
        return self.details


class Scene:
    """The tracker, the follower and the alerts of a monitor, without its readings."""

    def __init__(self, folder, monkeypatch):
        monkeypatch.setenv("MPSBAR_RUN_DIR", str(folder / "run"))
        self.mac = Mac(folder)
        self.follower, self.tracker, self.alerts = EndFollower(self.mac), ProcessTracker(), Alerts()
        self.told = []

    def tick(self, now, *workers, **fields):
        snapshot = make_snapshot(*workers, time=now, **fields)
        exits = self.follower.poll()
        ended = self.tracker.update(snapshot, exits)
        ended = self.follower.explain(snapshot, ended, exits)
        corrected = self.follower.recheck(now)
        for _, end in (*ended, *corrected):
            self.tracker.correct(end)
        self.follower.follow(snapshot)
        self.told += self.alerts.consider(snapshot, self.tracker, [*ended, *corrected])
        return [end for _, end in ended], [end for _, end in corrected]

    def end(self, status, time=ENDED, pid=67402):
        self.mac.watch.exits.append(Exit(pid, STARTED, time, status))


@pytest.fixture
def scene(tmp_path, monkeypatch):
    return Scene(tmp_path, monkeypatch)


def worker(pid=67402, name="train.py", **fields):
    process = make_process(pid, name, started=STARTED, footprint=9 * GB, command=("python", name))
    return make_training(pid, name, process=process, writes_exit_record=True, **fields)


def test_a_report_that_comes_later_corrects_the_row_and_then_the_alert(scene):
    scene.alerts.watch_end(WatchEnd(67402, STARTED, "train.py", on=True))
    scene.tick(ENDED - 1, worker())
    scene.end(ExitStatus(signal=6))
    ((end,), _) = scene.tick(ENDED + 0.5)
    assert (end.verdict.code, end.verdict.basis) == ("crashed", ("exit_status",))
    assert not end.is_settled
    assert scene.told == []  # nobody is told a verdict that may change in seconds
    stamp = datetime.fromtimestamp(ENDED).strftime("%Y-%m-%d-%H%M%S")  # noqa: DTZ006
    (scene.mac.user / f"Python-{stamp}.ips").write_text(read(ABORT))
    assert scene.tick(ENDED + 2) == ([], [])  # looked at after 3 s, not at every tick
    _, (end,) = scene.tick(ENDED + 3.5)
    assert (end.is_settled, end.verdict.basis) == (True, ("exit_status", "crash_report"))
    assert scene.tracker.ended == (end,)
    (alert,) = scene.told
    assert (alert.kind, alert.level, alert.verdict.code) == ("ended", "warning", "crashed")
    assert scene.tick(ENDED + 20) == ([], [])


def test_without_a_report_the_verdict_settles_after_the_second_look(scene):
    scene.tick(ENDED - 1, worker())
    scene.end(ExitStatus(signal=9))
    scene.tick(ENDED + 0.5)
    scene.tick(ENDED + 4)
    _, (end,) = scene.tick(ENDED + 11)
    assert (end.is_settled, end.verdict.code, end.verdict.sure) == (True, "killed", "known")


@pytest.mark.parametrize(
    ("machines", "code"),
    [
        ([MAC, MAC], "killed"),
        ([MAC, replace(MAC, pressure="critical")], "killed_for_memory"),
        ([MAC, replace(MAC, swap_used=3 * GB)], "killed_for_memory"),
    ],
)
def test_the_usual_kill_for_memory_leaves_no_report(scene, machines, code):
    for second, machine in enumerate(machines):
        scene.tick(ENDED - 2 + second, worker(), machine=machine)
    scene.end(ExitStatus(signal=9))
    ((end,), _) = scene.tick(ENDED + 0.5)
    assert end.verdict.code == code
    assert end.verdict.sure == ("known" if code == "killed" else "likely")


def test_memory_of_ten_minutes_ago_is_no_evidence(scene):
    scene.tick(ENDED - 600, worker(), machine=replace(MAC, pressure="critical"))
    scene.tick(ENDED - 50, worker())
    scene.tick(ENDED - 1, worker())
    scene.end(ExitStatus(signal=9))
    ((end,), _) = scene.tick(ENDED + 0.5)
    assert end.verdict.code == "killed"


def test_a_reset_of_the_gpu_and_who_died_of_it(scene):
    def machine(count):
        return replace(MAC, gpu=Gpu(recoveries=count))

    assert not scene.follower.conditions.note_reset(
        make_snapshot(machine=machine(21))
    )  # the first is no rise
    scene.tick(ENDED - 1, worker(), machine=machine(21))
    assert not scene.follower.conditions.note_reset(make_snapshot(machine=machine(None)))
    assert scene.follower.conditions.note_reset(make_snapshot(time=ENDED, machine=machine(22)))
    scene.end(ExitStatus(signal=6))
    ((end,), _) = scene.tick(ENDED + 0.5)
    assert (end.verdict.code, end.verdict.sure) == ("gpu_reset", "likely")
    alert = scene.alerts.build_reset(["train.py"], ENDED)
    assert (alert.code, alert.reason.values["names"]) == ("gpu_reset", "train.py")
    scene.alerts.causes = frozenset()
    assert scene.alerts.build_reset(["train.py"], ENDED) is None


def test_another_rank_failed_first(scene):
    ranks = [worker(100 + n, f"train.py rank {n} of 3", parent=50) for n in range(3)]
    scene.tick(ENDED - 1, *ranks)
    scene.mac.watch.exits = [
        Exit(100, STARTED, ENDED, ExitStatus(signal=15)),
        Exit(101, STARTED, ENDED, ExitStatus(signal=11)),
        Exit(102, STARTED, ENDED, ExitStatus(signal=15)),
    ]
    (ends, _) = scene.tick(ENDED + 0.5)
    verdicts = {end.pid: (end.verdict.code, end.verdict.sure) for end in ends}
    assert verdicts == {
        101: ("crashed", "known"), 100: ("other_rank", "likely"), 102: ("other_rank", "likely"),
    }  # fmt: skip


def test_two_runs_of_one_terminal_are_not_ranks(scene):
    scene.tick(ENDED - 1, worker(100, "a.py", parent=50), worker(101, "b.py", parent=50))
    scene.mac.watch.exits = [
        Exit(100, STARTED, ENDED, ExitStatus(signal=11)), Exit(101, STARTED, ENDED, ExitStatus(signal=15)),
    ]  # fmt: skip
    (ends, _) = scene.tick(ENDED + 0.5)
    assert {end.verdict.code for end in ends} == {"crashed", "terminated"}


def test_exec_is_no_end_of_the_process(scene):
    scene.tick(ENDED - 4, worker())
    scene.tick(ENDED - 2)
    ((end,), _) = scene.tick(ENDED)
    assert end.verdict.code == "replaced"
    scene.mac.details = replace(scene.mac.details, command=("python", "train.py"))
    scene.tracker.present.clear()
    scene.tick(ENDED + 2, worker())
    scene.tick(ENDED + 4)
    ((end,), _) = scene.tick(ENDED + 6)
    assert end.verdict.code == "unknown"  # the same command: the scan failed, nothing is known


@pytest.mark.parametrize(
    ("stopped", "code"),
    [
        (Stopped(67402, "train.py", "asked", started=STARTED), "stopped"),
        (Stopped(67402, "train.py", "not_allowed", started=STARTED), "interrupted"),
        (Stopped(67402, "train.py", "asked", started=5.0), "interrupted"),
    ],
)
def test_who_stopped_it(scene, stopped, code):
    scene.tick(ENDED - 1, worker())
    scene.end(ExitStatus(signal=2))
    ((end,), _) = scene.tick(ENDED + 0.5, stopped={67402: stopped})
    assert end.verdict.code == code


@pytest.mark.parametrize(
    ("code", "ran", "is_told"),
    [(1, 2.0, False), (0, 500.0, False), (1, MIN_FAILED_SECONDS, True)],
)
def test_only_runs_of_some_length_that_failed_are_told_unasked(scene, code, ran, is_told):
    scene.tick(STARTED + ran - 1, worker())
    scene.end(ExitStatus(code=code), time=STARTED + ran)
    scene.tick(STARTED + ran)
    assert [(a.code, a.verdict.code) for a in scene.told] == [("ended", "exit_code")] * is_told


def test_the_alert_of_a_failed_run_waits_for_the_quiet_after_a_wake_up(scene):
    scene.tick(STARTED + 100, worker())
    scene.tick(STARTED + 9000, worker())  # the computer slept
    scene.end(ExitStatus(code=1), time=STARTED + 9001)
    scene.tick(STARTED + 9001)
    assert scene.told == []
    scene.tick(STARTED + 9020)
    assert [alert.code for alert in scene.told] == ["ended"]


def test_ends_that_nobody_saw(scene, tmp_path):
    scene.tick(ENDED - 60, worker())
    ((_, end),) = scene.tracker.update(make_snapshot(time=ENDED + 9e4)) or scene.tracker.update(
        make_snapshot(time=ENDED + 9e4 + 2)
    )
    assert not end.was_seen
    (explained,) = scene.follower.explain_unseen([end], ENDED + 9e4)
    assert (explained.verdict.code, explained.verdict.sure) == ("unknown", "unknown")
    scene.mac.boot = ENDED
    (explained,) = scene.follower.explain_unseen([end], ENDED + 9e4)
    assert (explained.verdict.code, explained.verdict.sure) == ("restarted", "likely")
    stamp = datetime.fromtimestamp(ENDED).strftime("%Y-%m-%d-%H%M%S")  # noqa: DTZ006
    (scene.mac.user / f"Python-{stamp}.ips").write_text(read(ABORT))
    (explained,) = scene.follower.explain_unseen([end], ENDED + 9e4)
    assert (explained.verdict.code, explained.verdict.sure) == ("crashed", "known")
    folder = tmp_path / "run" / "ended"
    folder.mkdir(parents=True, mode=0o700)
    record = {"version": 1, "pid": 67402, "attached": STARTED + 1, "ended": ENDED,
              "error": {"type": "ValueError", "text": "x", "is_main": True}}  # fmt: skip
    (folder / f"{int(ENDED * 1000):013d}-67402.json").write_text(json.dumps(record))
    (tmp_path / "run").chmod(0o700)
    (explained,) = scene.follower.explain_unseen([end], ENDED + 9e4)
    assert (explained.verdict.code, explained.ended) == ("exception", ENDED)


def test_it_lets_go_of_what_it_holds(scene):
    scene.follower.close()
