"""Programs as people run them, idle: each is freed, with its helper threads in C waits.

Those of tests/wild (Ray, celery, Streamlit, joblib …) need an environment of their own: make wild.
"""

import pytest
from host_kit import start_host
from worker_kit import NO_MPS, UNPACED, Client, need_module, wait_for

START = f"""
import multiprocessing, os, signal, sys, threading, time
{UNPACED}
import torch, mpsbar
"""
END = """
time.sleep(0.3)  # until its threads stand in their waits
assert mpsbar.attach()
"""
PROGRAMS = {
    "zmq": """
import zmq
link = zmq.Context().socket(zmq.PULL)
link.bind_to_random_port("tcp://127.0.0.1")
threading.Thread(target=lambda: link.recv(), daemon=True).start()
""",
    "grpc": """
import grpc
from concurrent import futures
server = grpc.server(futures.ThreadPoolExecutor(2))
server.add_insecure_port("127.0.0.1:0")
server.start()
grpc.insecure_channel("127.0.0.1:1").subscribe(lambda state: None, try_to_connect=True)
""",
    "debugpy": """
import debugpy
debugpy.listen(("127.0.0.1", 0))
""",
    "multiprocessing": """
pool = multiprocessing.get_context("fork").Pool(2)
assert pool.map(abs, [-1, 2]) == [1, 2]
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_idle_program_is_freed(workers, name):
    if name != "multiprocessing":
        need_module(name)
    code = START + PROGRAMS[name] + END + "while True: time.sleep(100)\n"
    worker = start_host(workers, code)
    with worker.connect() as client:
        # The first may meet main on its way there.
        wait_for(lambda: not client.ask("free")["backends"]["mps"]["on_main"], "its wait")
        assert client.ask("free")["state"] == "done"


def test_all_workers_of_a_pool_are_freed(workers):
    # All but one stand in a semaphore of multiprocessing; each attaches for itself.
    code = (
        START
        + """
if __name__ == "__main__":
    pool = multiprocessing.get_context("fork").Pool(3, mpsbar.attach)
    assert pool.map(abs, [-1, 2]) == [1, 2]
    assert mpsbar.attach()
    signal.pause()
"""
    )
    worker = start_host(workers, code)
    paths = wait_for(lambda: len(p := list(worker.run_dir.glob("*.sock"))) == 4 and p, "agents")
    for path in paths:
        with Client(path) as client:
            assert client.ask("free")["state"] == "done"


WRAPPED = """
import torch, mpsbar, time
from torch.distributed.elastic.multiprocessing.errors import record
x = torch.ones(1 << 20, device="mps")
del x
@DECORATOR
def main():
    assert mpsbar.attach()
    print("in main", flush=True)
    time.sleep(1000)
if __name__ == "__main__":
    main()
"""


@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
@pytest.mark.parametrize(
    "decorator", ["record", "torch.compiler.disable", "torch.autocast('cpu')", "torch.no_grad()"]
)
def test_a_main_that_torch_has_wrapped_is_freed(workers, decorator):
    worker = workers.start_mps(WRAPPED.replace("DECORATOR", decorator))
    worker.wait_line("in main")
    assert worker.ask("free")["state"] == "done"


@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
def test_both_ends_of_spawn_are_freed(workers):
    worker = workers.start_mps("""
import torch, mpsbar, time, torch.multiprocessing
def work(rank):
    torch.ones(1 << 20, device="mps")
    assert mpsbar.attach()
    time.sleep(1000)
if __name__ == "__main__":
    torch.ones(1 << 20, device="mps")
    assert mpsbar.attach()
    torch.multiprocessing.spawn(work, nprocs=1)
""")  # fmt: skip
    paths = wait_for(lambda: len(p := list(worker.run_dir.glob("*.sock"))) == 2 and p, "agents")
    for path in paths:
        with Client(path) as client:
            answer = client.ask("free")
            assert answer["state"] == "done", answer
