"""Real servers and pools under `mpsbar run`: each worker once, under its parent, none stale."""

import json
import os
import signal
import sys
import textwrap
import time
import urllib.request

import pytest
from fleet_kit import find_free_port
from host_kit import add_stand_in
from worker_kit import ROOT, TIMEOUT, wait_for

from mpsbar.core.snapshot import Snapshot
from mpsbar.workers.poll import WorkerPoll

RUN = [sys.executable, "-m", "mpsbar", "run"]
# The real torch in one test of each kind of process, where it matters that it was used before a fork;
# in the others a stand-in: who starts whom is the same, and an import takes no two seconds.
APP = """
import os, torch
from fastapi import FastAPI

app = FastAPI()

@app.get("/")
def infer():
    return {"pid": os.getpid()}
"""
REAL_APP = """
import os, torch
from fastapi import FastAPI

app = FastAPI()
model = torch.nn.Linear(2, 1)

@app.get("/")
def infer():
    with torch.no_grad():
        return {"pid": os.getpid(), "out": model(torch.zeros(1, 2)).shape}
"""


@pytest.fixture
def folder(workers):
    path = workers.folder / "program"
    path.mkdir()
    (path / "app.py").write_text(APP)
    return path


@pytest.fixture
def stand_in(workers):
    return {"PYTHONPATH": f"{add_stand_in(workers.folder)}:{ROOT}"}


@pytest.fixture
def polled():
    found = WorkerPoll()
    yield lambda: found.poll(seconds=10)
    found.close()


def serve(workers, folder, *command, **extra):
    port = find_free_port()
    command = [part.format(port=port) for part in command]
    server = workers.run(
        [*RUN, sys.executable, "-m", *command],
        popen={"cwd": folder, "stderr": None}, OMP_NUM_THREADS="1", **extra,
    )  # fmt: skip
    wait_for(lambda: ask(port), "answer from the server")
    return server, port


def ask(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer:
            return json.load(answer)["pid"]
    except OSError:
        return None


def ask_until_all(port, number):
    """Connections are dealt to the workers as the kernel likes: ask until each has answered."""
    pids = set()

    def more():
        pids.add(ask(port))
        return len(pids - {None}) >= number

    wait_for(more, f"answers from {number} workers")
    return pids - {None}


def live(polled):
    return {worker.pid: worker for worker in polled() if worker.state == "live"}


def wait_for_rows(polled, pids):
    """All live workers, once these are among them."""
    return wait_for(lambda: (seen := live(polled)).keys() >= pids and seen, f"rows of {pids}")


def stop(server):
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(TIMEOUT)


def test_uvicorn_with_two_workers(workers, folder, polled, stand_in):
    command = "uvicorn app:app --workers 2 --host 127.0.0.1 --port {port} --log-level error"
    server, port = serve(workers, folder, *command.split(), **stand_in)
    pids = ask_until_all(port, 2)
    found = wait_for_rows(polled, pids)
    assert set(found) == pids  # uvicorn's supervisor does not import torch
    assert {worker.parent for worker in found.values()} == {server.pid}
    stop(server)
    wait_for(lambda: not polled(), "end of all rows")


def test_gunicorn_workers_have_their_own_agents(workers, folder, polled, stand_in):
    command = "gunicorn app:app -w 2 -k uvicorn_worker.UvicornWorker -b 127.0.0.1:{port}"
    pytest.importorskip("uvicorn_worker")
    server, port = serve(workers, folder, *command.split(), "--log-level", "error", **stand_in)
    pids = ask_until_all(port, 2)
    found = wait_for_rows(polled, pids)
    assert set(found) == pids
    stop(server)
    wait_for(lambda: not polled(), "end of all rows")


def test_gunicorn_preload_workers_attach_when_they_are_forked(workers, folder, polled):
    """torch is imported in the master only, where the agent was started."""
    (folder / "app.py").write_text(REAL_APP)
    pytest.importorskip("uvicorn_worker")
    command = "gunicorn app:app --preload -w 2 -k uvicorn_worker.UvicornWorker -b 127.0.0.1:{port}"
    server, port = serve(workers, folder, *command.split(), "--log-level", "error")
    pids = ask_until_all(port, 2)
    found = wait_for_rows(polled, pids | {server.pid})
    assert set(found) == pids | {server.pid}
    (family,) = Snapshot(0.0, tuple(found.values())).families
    assert family.root.pid == server.pid
    assert {worker.pid for worker in family.workers} == pids
    stop(server)
    wait_for(lambda: not polled(), "end of all rows")


POOL = """
import multiprocessing, os, time, torch

def work(seconds):
    {work}
    time.sleep(seconds)
    return os.getpid()

if __name__ == "__main__":
    with multiprocessing.get_context("{method}").Pool(2) as pool:
        print("pids", *set(pool.map(work, [1.0] * 2, chunksize=1)), flush=True)
        time.sleep(600)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_is_one_family(workers, folder, polled, method, stand_in):
    work = "torch.nn.Linear(2, 1)(torch.zeros(1, 2))" if method == "fork" else "pass"
    (folder / "pool.py").write_text(POOL.format(method=method, work=work))
    extra = {} if method == "fork" else stand_in
    worker = workers.run([*RUN, sys.executable, "pool.py"], popen={"cwd": folder}, **extra)
    pids = set(map(int, worker.wait_line("pids").split()[1:]))
    found = wait_for_rows(polled, pids | {worker.pid})
    if method != "forkserver":  # there the server process is the parent, and has no torch
        assert {found[pid].parent for pid in pids} == {worker.pid}
    families = Snapshot(0.0, tuple(found.values())).families
    everyone = [worker.pid for family in families for worker in (family.root, *family.workers)]
    assert sorted(everyone) == sorted(found)


def test_a_crash_loop_leaves_no_stale_rows(workers, folder, polled, stand_in):
    (folder / "crash.py").write_text("import os, torch\nprint('up', flush=True)\nos.abort()\n")
    (folder / "loop.sh").write_text(
        textwrap.dedent(f"""\
        for i in 1 2 3; do {sys.executable} crash.py; done 2>/dev/null
        echo over
        """)
    )
    worker = workers.run([*RUN, "sh", "loop.sh"], popen={"cwd": folder}, **stand_in)
    worker.wait_line("over")
    assert len(os.listdir(workers.run_dir)) == 3  # left by the dead
    assert polled() == ()
    assert os.listdir(workers.run_dir) == []


def test_a_reload_replaces_the_row(workers, folder, polled, stand_in):
    command = "uvicorn app:app --reload --host 127.0.0.1 --port {port} --log-level error"
    server, port = serve(workers, folder, *command.split(), **stand_in)
    first = ask(port)
    wait_for(lambda: set(live(polled)) == {first}, "the first worker")
    time.sleep(1.1)  # the reloader compares seconds
    (folder / "app.py").write_text(APP + "\n# changed\n")
    second = wait_for(lambda: (pid := ask(port)) not in (None, first) and pid, "reload")
    wait_for(lambda: set(live(polled)) == {second}, "the second worker alone")
    stop(server)
