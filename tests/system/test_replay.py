"""A recorded machine is read like a live one, and says what in it was invented."""

import json
import re
from pathlib import Path

import pytest

from mpsbar.core.errors import UserError
from mpsbar.monitor import Monitor
from mpsbar.system import replay, this_computer
from mpsbar.system.scan import Scanner


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(params=replay.list_recordings())
def recording(request):
    return replay.read_recording(request.param)


def test_every_recording_names_its_sources_and_what_is_invented(recording):
    assert recording["title"]
    assert all(re.match(r"[\w., ]+: .{20,}", source) for source in recording["recorded"])
    assert recording["invented"]


def test_every_recording_can_be_looked_at_and_hits_no_real_process(recording):
    monitor = Monitor(replay.RecordedComputer(recording))
    snapshot = monitor.tick()
    monitor.close()
    assert snapshot.problems == ()
    assert snapshot.machine.recording == recording["title"]
    assert snapshot.machine.gpu.memory_in_use > 0
    assert {worker.pid for worker in snapshot.workers} < {p.pid for p in snapshot.processes}
    assert all(worker.held and worker.process.footprint for worker in snapshot.workers)
    # Linux counts to 4194304, macOS to 99999: a click in a replay must find nobody.
    assert min(process.pid for process in snapshot.processes) > 4194304


def test_it_runs_in_steps_and_shares_of_the_gpu_come_out_as_recorded():
    clock = Clock()
    computer = replay.RecordedComputer(replay.read_recording("m1-8gb"), clock)
    scanner = Scanner(computer, clock)
    first = scanner.scan(60)
    clock.now += replay.STEP_SECONDS
    second = scanner.scan(60)
    scanner.close()
    assert (first.machine.gpu.memory_in_use, second.machine.gpu.memory_in_use) == (
        200048640,
        2013724672,
    )
    assert (first.machine.gpu.utilization, second.machine.gpu.utilization) == (34.0, 33.0)
    assert [p.footprint >> 20 for p in (first.processes[0], second.processes[0])] == [2300, 2350]
    assert second.processes[0].gpu_percent == pytest.approx(28.0)
    with pytest.raises(ProcessLookupError):
        computer.read_footprint(1)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"{", "is not a recording"), (b"[]", "is not a recording"), (b"{}", '"recording": 1'), (b"\xff", "is not a recording")],
)  # fmt: skip
def test_what_is_no_recording_is_said_so(tmp_path, content, words):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=words):
        replay.read_recording(str(path))


def test_a_recording_that_is_not_there_names_those_that_are():
    with pytest.raises(
        UserError, match="there is no recording nowhere; choose one of m1-8gb, m1max-64gb"
    ):
        replay.read_recording("nowhere")


def test_on_a_mac_the_mac_is_asked(monkeypatch):
    """Here there is none: its library cannot be loaded."""
    monkeypatch.delenv("MPSBAR_REPLAY", raising=False)
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(OSError, match=r"libSystem\.B\.dylib"):
        this_computer()


def test_chosen_by_name_or_file(monkeypatch, tmp_path):
    monkeypatch.setenv("MPSBAR_REPLAY", "m1-8gb")
    assert this_computer().read_machine().chip == "Apple M1"
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"recording": 1, "title": "mine"}))
    monkeypatch.setenv("MPSBAR_REPLAY", str(path))
    assert this_computer().read_machine().recording == "mine"
    monkeypatch.delenv("MPSBAR_REPLAY")
    assert this_computer().read_machine().recording is None
    assert Path(replay.__file__).parent.joinpath("recordings/m1-8gb.json").exists()
