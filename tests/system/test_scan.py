"""What is asked, how often, and what becomes of answers that are none."""

import itertools
import threading

import pytest
from read_timeouts_kit import hurry
from system.scripted import Scripted
from worker_kit import wait_for

from mpsbar.core.machine import Machine, Problem
from mpsbar.system import read_timeouts
from mpsbar.system.platform import Details, Footprint, GpuClient
from mpsbar.system.scan import FIRST_WAIT, FOUND_WAIT, LONGEST_WAIT, SHRUNK_WAIT, Scanner

TORCH = {"torch": "/v/lib/libtorch_cpu.dylib"}


class Watch:
    """A scanner with a clock of its own."""

    def __init__(self, computer):
        self.computer, self.now = computer, 100.0
        self.scanner = Scanner(computer, clock=lambda: self.now)

    def scan(self, after=0.0):
        self.now += after
        self.computer.asked.clear()
        self.last = self.scanner.scan(60)
        return {process.pid: process for process in self.last.processes or ()}


@pytest.fixture
def computer():
    return Scripted(pids={1: "a", 2: "b"}, libraries={2: TORCH})


@pytest.fixture
def watch(computer):
    watch = Watch(computer)
    yield watch
    watch.scanner.close()


def test_a_process_is_asked_once_for_what_it_has_loaded(watch, computer):
    (found,) = watch.scan().values()
    assert (found.pid, found.name, found.frameworks) == (2, "train2.py", ("torch",))
    assert (found.footprint, found.footprint_peak) == (2 << 20, 4 << 20)
    assert computer.asked in ([1, 2], [2, 1])
    computer.footprints[2] = Footprint(7, 8)
    (found,) = watch.scan(0.5).values()
    assert computer.asked == []
    assert (found.footprint, found.footprint_peak) == (7, 8)


def test_between_two_examinations_the_peak_is_the_most_that_was_seen(watch, computer):
    assert watch.scan()[2].footprint_peak == 4 << 20
    for now, peak in ((9 << 20, 9 << 20), (1 << 20, 9 << 20)):
        computer.footprints[2] = Footprint(now, None)
        found = watch.scan(1)[2]
        assert (found.footprint, found.footprint_peak) == (now, peak)
    computer.footprints[2] = Footprint(1 << 20, 12 << 20)
    assert watch.scan(FOUND_WAIT)[2].footprint_peak == 12 << 20


def test_who_comes_later_and_has_nothing_is_asked_with_back_off(watch, computer):
    watch.scan()
    computer.pids[3] = "c"
    asked_at = []
    for second in range(400):
        watch.scan(0 if second == 0 else 1)
        asked_at += [second] * computer.asked.count(3)
    waits = [after - before for before, after in itertools.pairwise(asked_at)]
    assert waits[:5] == [FIRST_WAIT, 4, 8, 16, 32]
    assert set(waits[5:]) == {LONGEST_WAIT}


def test_who_was_here_before_us_does_not_come_due_all_at_once(watch, computer):
    computer.pids = {pid: pid for pid in range(1, 501)}
    watch.scan()
    counts = []
    for _ in range(60):
        watch.scan(2)
        counts.append(len(computer.asked))
    assert max(counts) < 60
    assert sum(counts) >= 2 * 500


def test_torch_that_is_imported_late_is_found_when_the_answer_expires(watch, computer):
    watch.scan()
    computer.libraries[1] = TORCH
    assert set(watch.scan(LONGEST_WAIT + 1)) == {1, 2}


def test_a_process_of_the_same_size_has_loaded_nothing(watch, computer):
    """Believed for a while, then looked at all the same; a change of size is looked at at once."""
    computer.sizes = {1: 100, 2: 100}
    watch.scan()
    watch.scan(LONGEST_WAIT + 1)  # the size is taken with the second answer
    asked = 0
    for _ in range(9):
        watch.scan(LONGEST_WAIT + 1)
        asked += computer.asked.count(1)
    assert asked == 0
    watch.scan(LONGEST_WAIT + 1)
    assert 1 in computer.asked
    computer.sizes[1], computer.libraries[1] = 101, TORCH
    assert set(watch.scan(LONGEST_WAIT + 1)) == {1, 2}


def test_a_found_one_of_the_same_size_is_weighed_not_examined(watch, computer):
    """Hundreds of mappings are read again when the size changes, and every so often."""
    computer.sizes = {2: 100}
    watch.scan()
    watch.scan(FOUND_WAIT)  # the size is taken with the second answer
    asked = 0
    for number in range(9):
        computer.footprints[2] = Footprint(number, 1000 + number)
        found = watch.scan(FOUND_WAIT)[2]
        assert (found.footprint, found.footprint_peak) == (number, 1000 + number)
        asked += computer.asked.count(2)
    assert asked == 0
    watch.scan(FOUND_WAIT)
    assert 2 in computer.asked
    computer.libraries[2] = TORCH | {"mlx": "/v/libmlx.dylib"}
    assert watch.scan(FOUND_WAIT)[2].frameworks == ("torch",)
    computer.sizes[2] = 101
    assert watch.scan(FOUND_WAIT)[2].frameworks == ("torch", "mlx")
    computer.sizes[2], computer.libraries[2] = 7, {}  # exec
    assert watch.scan(FOUND_WAIT) == {}


def test_when_nobody_has_come_the_list_stays(watch, computer):
    assert set(watch.scan()) == {2}
    computer.pids = None
    assert set(watch.scan(1)) == {2}
    computer.footprints[2] = ProcessLookupError(2)  # who goes is noticed by being asked
    assert watch.scan(1) == {}
    assert watch.last.processes == ()


def test_one_that_opens_the_gpu_is_asked_at_once(watch, computer):
    computer.clients = {}
    watch.scan()
    computer.libraries[1] = TORCH | {"mlx": "/v/libmlx.dylib"}
    computer.clients = {77: GpuClient(1, 0)}
    found = watch.scan(0.1)
    assert found[1].frameworks == ("torch", "mlx")
    watch.scan(0.1)
    assert computer.asked == []


def test_a_worker_that_says_hello_is_examined_at_once_and_again_once_it_has_a_framework(
    watch, computer
):
    computer.pids = {1: "a"}
    watch.scan()
    computer.pids = {1: "a", 3: "c"}
    assert watch.scan(1) == {}
    computer.libraries[3] = TORCH  # between two examinations, which are seconds apart
    assert watch.scan(0.1) == {}
    assert watch.scanner.note_workers({3: False})
    assert list(watch.scan(0.1)) == [3]
    assert not watch.scanner.note_workers({3: True})  # it is known by now
    computer.pids = {1: "a", 4: "d"}
    watch.scan(1)
    assert watch.scanner.note_workers({4: False})
    assert not watch.scanner.note_workers({4: False})  # once
    assert watch.scan(0.1) == {}
    computer.libraries[4] = TORCH
    assert watch.scanner.note_workers({4: True})
    assert list(watch.scan(0.1)) == [4]


def test_a_pid_that_is_used_anew_is_another_process(watch, computer):
    watch.scan()
    computer.pids[2] = "another"
    computer.libraries[2] = {}
    assert watch.scan(0.1) == {}
    del computer.pids[2]
    computer.libraries[2] = TORCH
    assert watch.scan(0.1) == {}


def test_an_exec_is_noticed_in_time(watch, computer):
    assert set(watch.scan()) == {2}
    computer.libraries[2] = {}
    assert set(watch.scan(1)) == {2}
    assert watch.scan(FOUND_WAIT) == {}


def test_one_whose_agent_is_gone_is_examined_at_once(watch, computer):
    """After an exec the agent is gone; one that has only stopped its agent stays."""
    computer.sizes = {2: 100}
    watch.scan()
    assert not watch.scanner.note_workers({2: True})
    assert watch.scanner.note_workers({})
    assert set(watch.scan(0.1)) == {2}
    assert computer.asked == [2]
    assert not watch.scanner.note_workers({2: True})
    computer.libraries[2] = {}
    assert watch.scanner.note_workers({})
    assert watch.scan(0.1) == {}


def test_one_that_shrinks_may_be_another_program(watch, computer):
    computer.footprints[2] = Footprint(100 << 20, None)
    watch.scan()
    watch.scan(10)
    computer.libraries[2] = {}
    computer.footprints[2] = Footprint(60 << 20, None)
    assert set(watch.scan(1)) == {2}
    computer.footprints[2] = Footprint(1 << 20, None)
    assert watch.scan(1) == {}


def test_one_that_shrinks_over_and_over_is_examined_now_and_then(watch, computer):
    asked = 0
    for second in range(21):
        computer.footprints[2] = Footprint((1 << 20) << 6 * (second % 2), None)
        assert set(watch.scan(1)) == {2}
        asked += computer.asked.count(2)
    assert asked <= 1 + 20 / SHRUNK_WAIT


@pytest.mark.parametrize("gone", [ProcessLookupError(2), FileNotFoundError(2)])
def test_one_that_dies_while_it_is_read(watch, computer, gone):
    watch.scan()
    computer.footprints[2] = gone
    assert watch.scan(1) == {}
    assert watch.last.problems == ()
    computer.libraries[1] = gone
    assert watch.scan(LONGEST_WAIT + 1) == {}
    assert watch.last.problems == ()


def test_another_users_process_is_seldom_asked_and_no_problem(watch, computer):
    computer.libraries[1] = PermissionError(1)
    watch.scan()
    assert watch.last.problems == ()
    for _ in range(20):
        watch.scan(2)
        assert 1 not in computer.asked


def test_a_failure_is_reported_and_costs_that_process_only(watch, computer):
    computer.libraries[1] = OSError(5, "Input/output error")
    assert set(watch.scan()) == {2}
    assert watch.last.problems == (Problem("process 1", "OSError: [Errno 5] Input/output error"),)


@pytest.mark.parametrize("reader", ["machine", "pids", "clients"])
def test_each_reader_may_fail_alone(watch, computer, reader):
    computer.clients = {9: GpuClient(2, 5)}
    setattr(computer, reader, OSError("broken"))
    watch.scan()
    name = {"pids": "processes", "clients": "gpu"}.get(reader, reader)
    assert watch.last.problems == (Problem(name, "OSError: broken"),)
    assert (watch.last.machine == Machine()) is (reader == "machine")
    assert (watch.last.processes is None) is (reader == "pids")
    if reader == "clients":
        (found,) = watch.last.processes
        assert (found.gpu_client, found.gpu_percent) == (None, None)
        assert watch.last.gpu_clients == {}


def test_a_failure_that_passes_keeps_the_row_and_nothing_invented(watch, computer):
    watch.scan()
    computer.footprints[2] = OSError(24, "Too many open files")
    (found,) = watch.scan(1).values()
    assert (found.name, found.footprint) == ("train2.py", None)
    assert watch.last.problems[0].reader == "process 2"
    del computer.footprints[2]
    (found,) = watch.scan(1).values()
    assert found.footprint == 2 << 20
    assert watch.last.problems == ()


def test_eight_stuck_processes_do_not_blind_the_rest():
    """A job of eight ranks that hangs in the kernel costs its own rows."""
    gate = threading.Event()
    computer = Scripted(pids=dict.fromkeys(range(1, 21), "x"))
    computer.libraries = dict.fromkeys(range(1, 21), TORCH)
    real = computer.read_libraries
    computer.read_libraries = lambda pid: gate.wait(60) and {} if pid <= 9 else real(pid)
    watch = Watch(computer)
    hurry(watch.scanner)

    def has_seen_the_rest():
        found = watch.scan(2)
        assert set(found) <= set(range(10, 21))
        readers = {problem.reader for problem in watch.last.problems}
        return watch.last.machine.chip == "Apple M9" and not readers & {
            "machine",
            "processes",
            "gpu",
        }

    for _ in range(4):
        wait_for(has_seen_the_rest, "a scan with all that is vital")
    gate.set()
    watch.scanner.close()


def test_the_ceiling_of_a_scan_is_hard_and_what_was_late_is_reported_and_asked_again(computer):
    """Each answers, only slowly: none is stuck, and still the look ends."""
    computer.pids = dict.fromkeys(range(1, 1001), "x")
    computer.libraries = dict.fromkeys(range(1, 1001), TORCH)
    gate, real = threading.Event(), computer.read_libraries
    computer.read_libraries = lambda pid: (gate.wait(0.02), real(pid))[1]
    scanner = Scanner(computer)

    def scan_some():
        """At first perhaps none: the reading thread may wait that long for a processor."""
        scan = scanner.scan(0.5)
        return scan if scan.processes else None

    scan = wait_for(scan_some, "some processes")
    problems = {problem.reader: problem.text for problem in scan.problems}
    found, late = len(scan.processes), int(problems["processes"].split()[0])
    assert problems.pop("processes") == f"{late} could not be read in time"
    assert set(problems.values()) <= {"does not answer"}  # whom the last scan was at when it ended
    assert late > 0
    assert found + late + len(problems) == 1000
    gate.set()
    wait_for(lambda: len(scanner.scan(60).processes) == 1000, "the late ones")
    scanner.close()


def test_a_reader_that_gets_no_processor_is_late_and_does_not_hang(computer, monkeypatch):
    gate, run = threading.Event(), read_timeouts._ReadThread._run
    monkeypatch.setattr(read_timeouts._ReadThread, "_run", lambda self: gate.wait(60) and run(self))
    watch = Watch(computer)
    late = watch.scanner.scan(seconds=0.2)
    assert late.processes is None
    assert late.problems == tuple(
        Problem(reader, "could not be read in time") for reader in ("machine", "processes", "gpu")
    )
    gate.set()
    assert watch.scanner.scan(seconds=60).problems == ()
    watch.scanner.close()


def test_a_share_is_over_the_time_between_the_readings_themselves(computer):
    """A first scan takes long; what the GPU did meanwhile is not that of a moment."""
    watch = Watch(computer)
    computer.read_gpu_clients = lambda: {9: GpuClient(2, int(watch.now * 0.2e9))}

    def slow(pid):
        watch.now += 0.6
        return TORCH

    computer.read_libraries = slow
    watch.scan()
    assert watch.scan(0.2)[2].gpu_percent == pytest.approx(20.0)
    watch.scanner.close()


def test_names_and_paths_are_made_fit_to_be_shown(computer):
    def hostile(pid):
        path = "/tmp/\x1b[31m\nPa\x07int"
        return Details(1.0, 1, (path, "x"), path, {})

    computer.read_details = hostile
    watch = Watch(computer)
    (found,) = watch.scan().values()
    assert all(text.isprintable() for text in (found.name, found.executable))
    computer.read_details = lambda pid: Details(
        1.0, 1, ("python", "x.py"), "/tmp/\udcff\x1b/python3", {}
    )
    watch.scan(FOUND_WAIT)
    (found,) = watch.last.processes
    assert (found.python, found.environment) == (None, None)
    assert found.executable.isprintable()
    watch.scanner.close()


def test_what_a_platform_did_without_is_reported(watch, computer):
    computer.problems = (Problem("gpu", "IOKit: broken"),)
    watch.scan()
    assert watch.last.problems == computer.problems


def test_who_holds_the_gpu_and_how_much_of_it(watch, computer):
    computer.libraries[1] = TORCH
    computer.clients = {9: GpuClient(2, 0, True), 10: GpuClient(4711, 0, True)}
    found = watch.scan()
    assert (found[2].gpu_client, found[2].gpu_percent) == (True, None)  # one reading tells nothing
    assert (found[1].gpu_client, found[1].gpu_percent) == (False, 0.0)
    assert watch.last.gpu_clients == {1: False, 2: True}
    assert watch.last.has_gpu_times
    computer.clients = {9: GpuClient(2, 10**9, True)}
    assert watch.scan(2)[2].gpu_percent == 50.0


@pytest.mark.parametrize(
    ("clients", "told"),
    [
        ([], False),
        ([False], False),  # opened, as by is_available(): the allocator may not exist yet
        ([None], None),  # this macOS does not report it
        ([False, None], None),
        ([None, True], True),
        ([True, False], True),
    ],
)
def test_only_work_proves_that_a_process_uses_the_gpu(watch, computer, clients, told):
    computer.clients = {n: GpuClient(2, 0, worked) for n, worked in enumerate(clients)}
    assert watch.scan()[2].gpu_client is told
    assert watch.last.gpu_clients.get(2) is told


def test_a_known_one_that_gets_stuck_keeps_its_row_with_nothing_invented(computer):
    gate = threading.Event()
    watch = Watch(computer)
    watch.scan()
    computer.read_footprint = lambda pid, with_peak: gate.wait(60)
    hurry(watch.scanner)

    def is_stuck_alone():
        (found,) = watch.scan(1).values()
        seen = (found.name, found.footprint_peak) == ("train2.py", 4 << 20)
        return seen and watch.last.problems == (Problem("process 2", "does not answer"),) and found

    assert wait_for(is_stuck_alone, "the process that does not answer").footprint is None
    gate.set()
    watch.scanner.close()


def test_many_looks_keep_nothing(watch, computer):
    """Processes come and go; what is kept is about those who are here."""
    for number in range(2000):
        computer.pids = dict.fromkeys(range(number, number + 5), number)
        computer.libraries = {number: TORCH}
        watch.scan(2)
    assert len(watch.scanner._tracked) == 5
    assert len(watch.scanner._queue) < 5 * LONGEST_WAIT  # they leave it when they come due
