"""Polling real workers: all at once, none waits for another, those that ended are removed."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from mac_sockets import use_mac_sockets
from worker_kit import ATTACH, TIMEOUT, fill_queue, run_as_stranger, wait_for

from mpsbar.workers import poll
from mpsbar.workers.poll import SILENT_SECONDS, WorkerPoll
from mpsbar.workers.request import free_worker

IDLE = ATTACH + "import time\nwhile True: time.sleep(0.05)\n"
# The pid in a socket's name must be that of the process that serves it.
ME = os.getpid()


@pytest.fixture
def polled():
    found = WorkerPoll()
    yield found
    found.close()


def states(polled, **options):
    return {worker.pid: worker.state for worker in polled.poll(**options)}


def test_nobody_there_is_an_empty_answer(workers, polled):
    assert polled.poll() == ()
    workers.run_dir.rmdir()
    assert polled.poll() == ()


@pytest.mark.usefixtures("each_systems_sockets")
def test_all_workers_are_found_named_and_kept_connected(workers, polled):
    started = [workers.start(IDLE) for _ in range(3)]
    for _ in range(3):
        found = polled.poll(seconds=30)
        assert {worker.pid: worker.name for worker in found} == {
            worker.pid: f"worker{number}.py" for number, worker in enumerate(started)
        }
        assert {worker.state for worker in found} == {"live"}
    # One connection to each for all three polls.
    assert len(polled._selector.get_map()) == 3


def test_a_worker_that_stops_answering_keeps_its_last_values_and_their_age(workers, polled):
    worker = workers.start(IDLE)
    other = workers.start(IDLE)
    polled.poll(seconds=30)
    worker.freeze()

    def look():
        return {w.pid: w for w in polled.poll(seconds=0.2)}

    try:
        found = wait_for(lambda: (seen := look())[other.pid].state == "live" and seen, "the other")
        assert found[worker.pid].state == "busy"
        assert found[worker.pid].name == "worker0.py"
        assert found[worker.pid].age > 0
        older = look()[worker.pid]
        assert older.state == "busy"
        assert older.age > found[worker.pid].age
    finally:
        worker.thaw()
    wait_for(lambda: states(polled)[worker.pid] == "live", "answer")


@pytest.mark.usefixtures("each_systems_sockets")
def test_a_worker_that_never_answered_is_shown_as_such(workers, polled):
    worker = workers.start(IDLE)
    worker.freeze()
    found = polled.poll(seconds=0.2)
    assert [(w.pid, w.state, w.age, w.held) for w in found] == [(worker.pid, "busy", None, None)]
    worker.thaw()


@pytest.mark.usefixtures("each_systems_sockets")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_dead_are_gone_at_the_next_look_and_their_files_with_them(workers, polled, number):
    worker = workers.start(IDLE)
    assert states(polled, seconds=30) == {worker.pid: "live"}
    worker.process.send_signal(number)
    worker.process.wait(60)
    assert states(polled) == {}
    assert not list(workers.run_dir.glob("*.sock"))


class Clock:
    """In the place of the module `time`."""

    def __init__(self):
        self.now = time.monotonic()

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def time(self):
        return time.time()


def find_unused_pids():
    """Above any pid that the kernel gives out."""
    most = int(Path("/proc/sys/kernel/pid_max").read_text()) if sys.platform == "linux" else 99999
    return range(most + 1, most + 4)


def bind(path, queue=None):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    if queue is None:
        listener.close()
    else:
        listener.listen(queue)
    return listener


@pytest.mark.usefixtures("each_systems_sockets")
def test_only_a_refused_connection_removes_a_file(workers, polled):
    """A listener that never accepts, a plain file, and a socket nobody listens on."""
    plain, dead, _ = find_unused_pids()
    silent = ME
    (workers.run_dir / f"{plain}.sock").touch()
    listener = bind(workers.run_dir / f"{silent}.sock", 1)
    bind(workers.run_dir / f"{dead}.sock")
    assert states(polled, seconds=0.2) == {silent: "busy"}
    # Nor will anybody ever listen at a plain file: Linux refuses, macOS says that it is no socket.
    assert [path.name for path in workers.run_dir.iterdir()] == [f"{silent}.sock"]
    listener.close()


def test_the_file_of_a_living_process_stays_though_it_refuses(workers, polled):
    path = workers.run_dir / f"{os.getpid()}.sock"
    bind(path)
    assert states(polled) == {}
    assert path.exists()


def test_the_file_of_a_process_whose_pid_is_another_is_removed(workers):
    path = workers.run_dir / f"{os.getpid()}.sock"
    bind(path)
    polled = WorkerPoll(lambda pid: path.lstat().st_mtime + 60)
    assert states(polled) == {}
    assert not path.exists()
    bind(path)
    polled = WorkerPoll(lambda pid: path.lstat().st_mtime - 60)
    assert states(polled) == {}
    assert path.exists()


def test_on_macos_a_full_queue_is_a_refusal_and_no_death(workers, polled, monkeypatch):
    """The worker keeps its row and its file, is asked again, and freed as soon as it can."""
    use_mac_sockets(monkeypatch)
    worker = workers.start(IDLE)
    assert states(polled, seconds=30) == {worker.pid: "live"}
    worker.freeze()
    callers = fill_queue(worker.path)
    for known in list(polled._polled.values()):
        polled._disconnect(known)  # as the agent does when nobody has asked for a while
    assert states(polled) == {worker.pid: "busy"}
    assert worker.path.exists()
    assert free_worker(worker.pid, seconds=0.3).state == "silent"
    worker.thaw()
    for caller in callers:
        caller.close()
    wait_for(lambda: states(polled) == {worker.pid: "live"}, "answer")
    assert free_worker(worker.pid).state == "done"


def test_on_macos_one_that_became_another_program_is_no_full_queue(workers, polled, monkeypatch):
    """It has closed the connection as well."""
    use_mac_sockets(monkeypatch)
    monkeypatch.setattr(poll, "_REFUSING_SECONDS", 1e9)
    now = workers.folder / "now"
    worker = workers.start(
        ATTACH + "import os, time\n"
        f"while not os.path.exists({str(now)!r}): time.sleep(0.05)\n"
        "os.execv('/bin/sleep', ['sleep', '600'])\n"
    )
    assert states(polled, seconds=30) == {worker.pid: "live"}
    now.touch()
    wait_for(lambda: states(polled) == {}, "the end of its agent")


def test_on_macos_one_that_ends_while_it_is_connected_again_is_no_full_queue(
    workers, polled, monkeypatch
):
    """Its connection is closed before its listener is: another one is made, and closed as well."""
    use_mac_sockets(monkeypatch)
    monkeypatch.setattr(poll, "_REFUSING_SECONDS", 1e9)

    class Ends(Liar):
        def serve(self) -> None:
            link, _ = self.listener.accept()
            with link, link.makefile("rb") as lines:
                for _ in range(2):
                    result = {"jsonrpc": "2.0", "id": json.loads(next(lines))["id"], "result": {}}
                    link.sendall(json.dumps(result).encode() + b"\n")
                next(lines)  # the poll waits for its answer
            again, _ = self.listener.accept()
            self.listener.close()
            again.close()

    ends = Ends(workers.run_dir / f"{ME}.sock", [])
    ends.thread.start()
    assert states(polled, seconds=TIMEOUT) == {ME: "live"}
    wait_for(lambda: states(polled) == {}, "the end of its row")
    ends.thread.join(TIMEOUT)


@pytest.mark.usefixtures("each_systems_sockets")
def test_a_lying_agent_can_neither_crash_nor_fool_us(workers, polled):
    """Garbage, wrong types, huge numbers, escape codes: shown as unknown, or cut."""
    answers = [
        b'{"jsonrpc":"2.0","id":1,"result":{"argv":["python","a\\u001b[2J\\u202eb.py"],"pid":1}}\n',
        b'{"jsonrpc":"2.0","id":2,"result":{"backends":{"mps":{"state":"in use","allocated":-5,'
        b'"reserved":1e400,"driver":99999999999999999999999,"peak":true,"budget":"7"},"x":[]}}}\n',
    ]
    with Liar(workers.run_dir / f"{ME}.sock", answers):
        (found,) = polled.poll(seconds=TIMEOUT)
    assert found.name == "a�[2J�b.py"
    backend = found.backends[0]
    assert (backend.allocated, backend.driver, backend.peak, backend.budget) == (None,) * 4
    assert found.held is None


@pytest.mark.parametrize("noise", [b"\xff" * 100 + b"\n", b"[]\n", b"x" * 70000, b"{}\n" * 3])
def test_noise_only_costs_its_own_row(workers, polled, noise):
    worker = workers.start(IDLE)

    def look():
        found = states(polled, seconds=0.5)
        assert found[ME] == "busy"
        return found[worker.pid] == "live"

    with Liar(workers.run_dir / f"{ME}.sock", [noise]) as liar:
        wait_for(lambda: look() and liar.accepted, "answer of the other")


def test_an_agent_that_closes_at_once_does_not_make_us_spin(workers, polled):
    with Liar(workers.run_dir / f"{ME}.sock", []) as liar:
        assert states(polled, seconds=1) == {ME: "busy"}
        assert liar.accepted <= 2


class Liar:
    """A server of this user that answers what it likes, then closes."""

    def __init__(self, path, answers) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(5)
        self.answers = answers
        self.accepted = 0
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def serve(self) -> None:
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            with link, suppress(ConnectionError):  # who asked may have gone away
                if self.answers:
                    link.recv(65536)
                    link.sendall(b"".join(self.answers))
                    link.recv(65536)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_worker_of_another_user_is_refused_by_the_client(workers, polled):
    """A stranger listens in our directory: the kernel says who it is, and it is not talked to."""
    workers.folder.chmod(0o755)
    workers.run_dir.chmod(0o777)
    stranger = threading.Thread(
        target=run_as_stranger,
        args=(f"""
            listener = socket.socket(socket.AF_UNIX)
            listener.bind("{workers.run_dir}/17.sock")
            os.chmod("{workers.run_dir}/17.sock", 0o777)
            listener.listen(5)
            open("{workers.run_dir}/listens", "w").close()
            while not os.path.exists("{workers.run_dir}/stop"): time.sleep(0.05)
        """,),
    )  # fmt: skip
    stranger.start()
    wait_for((workers.run_dir / "listens").exists, "stranger")
    try:
        assert polled.poll(seconds=0.2) == ()
        assert (workers.run_dir / "17.sock").exists()
    finally:
        (workers.run_dir / "stop").touch()
        stranger.join()


def test_an_error_for_an_answer_is_not_taken_for_nothing_loaded(workers, polled):
    """Its last values stand, and grow old."""
    stats = {"backends": {"mlx": {"framework": "mlx", "state": "in use", "allocated": 7}}}

    class Falters(Liar):
        def serve(self) -> None:
            link, _ = self.listener.accept()
            with link, link.makefile("rb") as lines:
                for number, line in enumerate(lines):
                    asked = json.loads(line)
                    reply = (
                        {"result": stats} if number < 2 else {"error": {"code": 1, "message": "x"}}
                    )
                    link.sendall(
                        json.dumps({"jsonrpc": "2.0", "id": asked["id"], **reply}).encode() + b"\n"
                    )

    with Falters(workers.run_dir / f"{ME}.sock", []):
        (first,) = polled.poll(seconds=TIMEOUT)
        (second,) = polled.poll(seconds=TIMEOUT)
    assert (first.state, first.held) == ("live", 7)
    assert (second.state, second.held) == ("busy", 7)
    assert second.age > 0


def test_a_socket_served_by_another_process_than_its_name_says_is_refused(workers, polled):
    """Else a row, and Stop in it, would be about the wrong process."""
    with Liar(workers.run_dir / f"{os.getppid()}.sock", []) as liar:
        assert states(polled, seconds=0.2) == {}
        assert free_worker(os.getppid()).state == "refused"
        assert liar.accepted <= 3


@pytest.mark.parametrize("name", ["9999999999", "4294967296", "2147483648"])
def test_a_pid_that_no_kernel_gives_is_passed_over(workers, polled, name):
    with Liar(workers.run_dir / f"{name}.sock", []):
        assert states(polled, seconds=0.2) == {}


@pytest.mark.parametrize(
    "end", ["import os; os._exit(3)", "import os; os.execv('/bin/sleep', ['sleep', '600'])"]
)
def test_sockets_left_by_exit_and_exec_are_removed(workers, polled, end):
    worker = workers.start(IDLE.partition("while")[0] + f"print('up')\ninput()\n{end}\n",
                           popen={"stdin": subprocess.PIPE})  # fmt: skip
    assert states(polled, seconds=TIMEOUT) == {worker.pid: "live"}
    worker.process.stdin.write(b"\n")
    wait_for(lambda: states(polled) == {}, "removal")
    worker.end()  # until then the file of a living process stays, though it refuses
    assert states(polled) == {}
    assert not worker.path.exists()


def test_who_was_silent_last_time_delays_nobody(workers, polled, monkeypatch):
    """By a clock that only goes on while the poll waits: for how long it would wait at most."""
    silent, other = workers.start(IDLE), workers.start(IDLE)
    clock, waits, select = Clock(), [], polled._selector.select

    def wait(seconds):
        """The other one answers before the time is over, whenever that is."""
        waits.append(seconds)
        others = [known for known in polled._polled.values() if known.pid == other.pid]
        if seconds > 0 and not others[0].is_waiting:
            clock.now += seconds
            return []
        return select(TIMEOUT if seconds > 0 else 0)

    def find_longest_wait():
        waits.clear()
        with monkeypatch.context() as patch:
            patch.setattr(poll, "time", clock)
            patch.setattr(polled._selector, "select", wait)
            assert states(polled, seconds=3) == {silent.pid: "busy", other.pid: "live"}
        return max(waits)

    for _ in range(2):  # it has answered since, so it is waited for again, once
        wait_for(lambda: set(states(polled).values()) == {"live"}, "answers")
        silent.freeze()
        assert find_longest_wait() > 1
        assert find_longest_wait() <= SILENT_SECONDS
        silent.thaw()


def test_near_the_limit_of_descriptors_a_reserve_is_kept(workers, polled):
    first, second = workers.start(IDLE), workers.start(IDLE)
    polled._most_connections = 1
    found = states(polled, seconds=TIMEOUT)
    assert sorted(found) == sorted((first.pid, second.pid))
    assert sorted(found.values()) == ["busy", "live"]


def test_the_hint_reaches_the_worker_it_is_about(workers, polled):
    asked = []

    class Hears(Liar):
        def serve(self) -> None:
            link, _ = self.listener.accept()
            asked.append(link.recv(65536))
            link.close()

    with Hears(workers.run_dir / f"{ME}.sock", []):
        wait_for(lambda: polled.poll({ME: True, ME + 1: False}, seconds=1) and asked, "request")
    assert b'"method":"stats","params":{"gpu_client":true}' in asked[0]
