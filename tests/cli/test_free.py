"""mpsbar free with real workers: what was measured, and why one was not freed."""

import re

import psutil
import pytest
from cli.command_kit import IDLE
from schema_kit import read_json
from worker_kit import ATTACH, NO_MPS, need_module, wait_for

MLX = (
    "import mlx.core as mx\nmx.set_cache_limit(1 << 30)\na = mx.ones((8 << 20,))\nmx.eval(a)\ndel a\n"
    + ATTACH
    + "print('attached', flush=True)\n"
    + IDLE
)


def test_status_and_free_of_a_real_worker(mpsbar, workers):
    need_module("mlx")
    worker = workers.start(MLX)
    worker.wait_line("attached")
    worker.wait_asleep()  # a Free waits five seconds for a main that does not wait yet
    lines = mpsbar("status", "--wide").stdout.split("\n\n")[1].splitlines()
    assert lines[0].split() == [
        "PID",
        "NAME",
        "DEVICE",
        "HELD",
        "ALLOCATED",
        "CACHED",
        "PEAK",
        "RSS",
        "NOTE",
    ]
    (line,) = [words for line in lines if (words := line.split())[:1] == [str(worker.pid)]]
    line = [word for word in line if word != "└"]  # pytest has MLX loaded too by now
    assert line[:5] == [str(worker.pid), "worker0.py", "mlx", "32.0", "MB"]
    assert line[9].replace(".", "").isdigit()  # the system's own word
    (worker_status,) = read_json("status", mpsbar("status", "--json").stdout)["workers"]
    assert (worker_status["pid"], worker_status["device"], worker_status["cached"] >> 20) == (
        worker.pid,
        "mlx",
        32,
    )
    done = mpsbar("free", str(worker.pid))
    assert done.returncode == 0
    # Whether its main thread comes by within 40 ms, for gc.collect(), is up to the machine.
    late = r"(; gc\.collect\(\) skipped: the main thread (was waiting|couldn't be reached))?"
    assert re.fullmatch(
        rf"{worker.pid} worker0.py: freed 32.0 MB in [\d.]+ m?s{late}\n", done.stdout
    )
    (worker_status,) = read_json("status", mpsbar("status", "--json").stdout)["workers"]
    assert (worker_status["cached"], worker_status["held"]) == (0, 0)


def test_free_all(mpsbar, workers):
    started = [workers.start(ATTACH + IDLE) for _ in range(3)]
    done = mpsbar("free", "--all", "--json")
    outcomes = read_json("free", done.stdout)["freed"]
    assert (done.returncode, {o["pid"] for o in outcomes}) == (0, {w.pid for w in started})
    assert {(o["state"], o["freed"]) for o in outcomes} == {("done", 0)}
    for worker in started:
        worker.end()
    assert mpsbar("free", "--all").stdout == "No processes connected\n"


@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
def test_a_busy_worker_is_exit_code_1_with_the_reason(mpsbar, workers):
    worker = workers.start_mps(
        "import torch, threading, time\na = torch.ones(4, device='mps')\n" + ATTACH
        # In C code that nothing is known of; it sleeps there, which costs no core.
        + "import ctypes; work = lambda: ctypes.CDLL(None).sleep(10**6)\n"
        + "threading.Thread(target=work, daemon=True).start()\nprint('ready')\n" + IDLE
    )  # fmt: skip
    worker.wait_line("ready")
    worker.ask_until_refused("thread_unproven", seconds=0.5)  # the thread has come there
    pid = str(worker.pid)

    def is_refused_for_its_thread():
        """On busy cores main may come by too late for that to be found."""
        done = mpsbar("free", pid)
        is_found = "busy: another thread couldn't be shown to be waiting (Thread-" in done.stdout
        return done if is_found else None

    done = wait_for(is_refused_for_its_thread, "its reason")
    assert done.returncode == 1
    assert "; tried for 5.0 s; " in done.stdout
    assert done.stdout.endswith(
        f"To free at the first safe moment: mpsbar free --when-possible {pid}\n"
    )
    done = mpsbar("free", "--when-possible", pid)
    assert (done.returncode, "it will be freed when possible, within " in done.stdout) == (0, True)
    assert worker.ask("stats")["kept_free"] is not None
    done = mpsbar("free", "--cancel", pid)
    assert (done.returncode, "Free When Possible was canceled" in done.stdout) == (0, True)
    assert worker.ask("stats")["kept_free"] is None
    done = mpsbar("free", "--cancel", pid)
    assert (done.returncode, "nothing is waiting to be freed in this process" in done.stdout) == (
        1,
        True,
    )


@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
def test_a_worker_that_can_never_be_freed_is_not_told_to_wait(mpsbar, workers):
    worker = workers.start_mps(
        "import torch, sys\na = torch.ones(4, device='mps')\n"
        + ATTACH + "sys._is_gil_enabled = lambda: False\nprint('ready')\n" + IDLE
    )  # fmt: skip
    worker.wait_line("ready")
    for options in ((), ("--when-possible",)):
        done = mpsbar("free", str(worker.pid), *options)
        assert done.returncode == 1
        assert "busy: it runs without the GIL" in done.stdout
        assert "when" not in done.stdout
    assert worker.ask("stats")["kept_free"] is None


def test_a_frozen_worker_does_not_hold_the_others_up(mpsbar, workers):
    frozen, live = workers.start(ATTACH + IDLE), workers.start(ATTACH + IDLE)
    frozen.freeze()

    def read_states():
        status = read_json("status", mpsbar("status", "--json", patient=False).stdout)
        return {worker["pid"]: worker["state"] for worker in status["workers"]}

    # On busy cores the other one may be late, too.
    wait_for(lambda: read_states() == {frozen.pid: "busy", live.pid: "live"}, "an answer")

    def free_both():
        done = mpsbar("free", str(frozen.pid), str(live.pid), "--timeout", "5", patient=False)
        assert done.returncode == 1
        assert "no answer within 5.0 s" in done.stdout
        return f"{live.pid} worker1.py: freed 0 B" in done.stdout

    wait_for(free_both, "a Free of the other one")
    frozen.thaw()


def test_only_the_process_that_started_then(mpsbar, workers):
    """A pid that was used again is another process; the clock may have moved a little meanwhile."""
    worker = workers.start(ATTACH + IDLE)
    started = psutil.Process(worker.pid).create_time()
    for moved, state in ((0.0, "done"), (1.0, "done"), (-100.0, "gone"), (100.0, "gone")):
        at = str(started + moved)
        done = mpsbar("free", str(worker.pid), "--json", "--started", at)
        (outcome,) = read_json("free", done.stdout)["freed"]
        assert (outcome["pid"], outcome["state"]) == (worker.pid, state)
    done = mpsbar("free", "--all", "--started", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--started is for one PID" in done.stderr
