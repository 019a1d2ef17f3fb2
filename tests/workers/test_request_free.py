"""One Free from the monitor's side: every ending is an outcome, none is an exception."""

import socket

import pytest
from worker_kit import ATTACH, need_module

from mpsbar.core.snapshot import LastFree
from mpsbar.workers.parse import parse_freed, parse_worker
from mpsbar.workers.request import free_worker

IDLE = ATTACH + "import time\nwhile True: time.sleep(0.05)\n"


@pytest.mark.usefixtures("each_systems_sockets")
def test_a_worker_is_freed_and_named(workers):
    need_module("mlx")
    worker = workers.start(
        "import mlx.core as mx\nmx.set_cache_limit(1 << 30)\na = mx.ones((8 << 20,))\n"
        "mx.eval(a)\ndel a\n" + ATTACH + "print('attached', flush=True)\n" + IDLE
    )
    worker.wait_line("attached")
    worker.wait_asleep()  # a Free waits five seconds for a main that does not wait yet
    outcome = free_worker(worker.pid)
    assert (outcome.pid, outcome.name, outcome.state) == (worker.pid, "worker0.py", "done")
    assert outcome.freed >= 32 << 20
    assert outcome.pinned == 0
    assert outcome.seconds > 0


def test_nobody_with_this_pid(workers):
    assert free_worker(999999).state == "gone"


@pytest.mark.usefixtures("each_systems_sockets")
def test_the_dead(workers):
    worker = workers.start(IDLE)
    worker.process.kill()
    worker.process.wait()
    assert free_worker(worker.pid).state == "gone"


@pytest.mark.usefixtures("each_systems_sockets")
def test_the_silent(workers):
    worker = workers.start(IDLE)
    worker.freeze()
    outcome = free_worker(worker.pid, seconds=0.3)
    worker.thaw()
    assert (outcome.state, outcome.seconds) == ("silent", 0.3)


@pytest.mark.usefixtures("each_systems_sockets")
def test_a_socket_that_cannot_be_used(workers):
    (workers.run_dir / "21.sock").mkdir()
    assert free_worker(21).state in ("refused", "gone")
    queue_full = socket.socket(socket.AF_UNIX)
    queue_full.bind(str(workers.run_dir / "22.sock"))
    queue_full.listen(0)
    waiting = []
    for _ in range(4):
        link = socket.socket(socket.AF_UNIX)
        link.setblocking(False)
        link.connect_ex(str(workers.run_dir / "22.sock"))
        waiting.append(link)
    assert free_worker(22, seconds=0.3).state in ("refused", "silent")
    queue_full.close()


def afterwards(**counters):
    stats = {"backends": {"mps": {"state": "in use", **counters}}}
    return parse_worker(5, {"argv": ["python", "train.py"]}, stats, "live", 0.0)


def test_what_stays_cached_after_a_free_is_pinned():
    after = afterwards(allocated=100, reserved=250, driver=300)
    outcome = parse_freed(after, {"state": "done", "freed": 50, "seconds": 0.04, "backends": {}})
    assert (outcome.state, outcome.freed, outcome.pinned) == ("done", 50, 150)


def test_before_torch_2_13_nothing_is_said_of_pinning():
    outcome = parse_freed(afterwards(allocated=100, driver=300), {"state": "done", "freed": 5})
    assert outcome.pinned is None


def test_busy_keeps_its_reason():
    reason = {"code": "thread_computing", "where": "Thread-1, app.py:3 in infer\x1b[0m"}
    outcome = parse_freed(afterwards(), {"state": "busy", "freed": 0, "reason": reason})
    assert (outcome.state, outcome.reason) == ("busy", "thread_computing")
    assert outcome.where == "Thread-1, app.py:3 in infer�[0m"


@pytest.mark.parametrize("answer", [None, [], "x", 3])
def test_no_answer_is_a_failure(answer):
    assert parse_freed(afterwards(), answer).state == "failed"


def test_an_error_of_one_backend_is_reported():
    answer = {"state": "done", "freed": 0, "backends": {"mlx": {"freed": None, "error": "no"}}}
    outcome = parse_freed(afterwards(), answer)
    assert (outcome.state, outcome.error) == ("failed", "no")


@pytest.mark.parametrize(
    ("last_free", "parsed"),
    [
        (None, None),
        ("x", None),
        ({"number": 1, "state": "done"}, None),
        ({"number": -1, "time": 1.0, "state": "done"}, None),
        ({"number": 1, "time": True, "state": "done"}, None),
        ({"number": 1, "time": float("nan"), "state": "done"}, None),
        ({"number": 1, "time": 10**400, "state": "done"}, None),
        ({"number": 1, "time": 1.0, "state": ["done"]}, None),
        ({"number": 2, "time": 1, "state": "busy"}, LastFree(2, 1.0, "busy")),
        (
            {"number": 2, "time": 5.5, "state": "done", "freed": 7, "seconds": 0.1, "more": 1},
            LastFree(2, 5.5, "done", 7, 0.1),
        ),
        ({"number": 2, "time": 5, "state": "done", "freed": -7}, LastFree(2, 5.0, "done")),
    ],
)
def test_the_last_free_of_a_worker_is_not_trusted(last_free, parsed):
    assert parse_worker(5, {}, {"last_free": last_free}, "live", 0.0).last_free == parsed
