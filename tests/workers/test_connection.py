"""Asking the same again: an answer is parsed only when it differs, and never missed when it does."""

import subprocess
import sys

from fleet_kit import MLX_WORKER
from worker_kit import need_module, wait_for

from mpsbar.agent import protocol
from mpsbar.workers.connection import WorkerConnection

GROWING = MLX_WORKER.replace("time.sleep(3600)", "more = []\nwhile True:\n    input(); more.append(mx.ones((1 << 20,))); mx.eval(more[-1])\n    print('grown', flush=True)")  # fmt: skip


def ask(connection):
    connection.ask_again("stats", {})
    connection.send()
    (answer,) = wait_for(connection.receive, "answer")
    return answer


def test_the_same_answer_is_the_same_object_and_a_new_one_is_seen(workers):
    need_module("mlx")
    script = workers.folder / "growing.py"
    script.write_text(GROWING)
    worker = workers.run([sys.executable, str(script)], popen={"stdin": subprocess.PIPE})
    worker.wait_line("ready")
    connection = WorkerConnection(str(worker.path))
    method, first = ask(connection)
    assert method == "stats"
    assert ask(connection)[1] is first
    worker.process.stdin.write(b"\n")
    worker.wait_line("grown")
    grown = ask(connection)[1]
    assert grown["backends"]["mlx"]["allocated"] == first["backends"]["mlx"]["allocated"] + (
        4 << 20
    )
    assert not connection.is_waiting("stats")
    connection.close()


def test_other_params_are_another_request(workers):
    need_module("mlx")
    worker = workers.start(MLX_WORKER)
    connection = WorkerConnection(str(worker.path))
    ask(connection)
    connection.ask_again("stats", {"gpu_client": True})
    assert protocol.request(2, "stats", {"gpu_client": True}) in bytes(connection._unsent)
    connection.close()
