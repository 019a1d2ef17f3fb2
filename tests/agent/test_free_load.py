"""Releases in strict mode while programs compute as people's do: none overlaps an op.

In `make test` 200 of them, in `make thorough` 2,000.
"""

import json
import signal
import threading

import httpx
import pytest
from thorough import two_sizes
from worker_kit import NO_MPS, need_module

pytestmark = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))

# A Free that finds a thread computing is refused; with this deadline it gives up soon.
SECONDS = 0.05
# For each group of waits in C.
START = """
import asyncio, gc, json, os, queue, random, signal, sys, threading, time
import torch, mpsbar
MiB = 1 << 20
weight = torch.randn(64, 64, device="mps", requires_grad=True)
def compute(n):
    x = torch.ones(n % 50 + 1, 64, device="mps")
    torch.ops.softmps.busy_(x, n % 20 / 1000)  # longer than the proof takes, often
    return float((x @ weight).relu().sum())
expected = compute(7)
gc.freeze()  # else each collection looks at all of torch, and 2,000 of them take minutes
done = [0]
def count_done():
    done[0] += 1
    if done[0] == ENOUGH: print("enough")
def finish(*_):
    right = compute(7) == expected
    print("end", json.dumps(dict(torch.ops.softmps.counters()) | {"done": done[0], "right": right}))
    os._exit(0)
"""


def free_many(worker, releases):
    """Ask until so many have released; that number, and how many were busy."""
    freed = busy = 0
    with worker.connect() as client:
        while freed < releases:
            answer = client.ask("free", seconds=SECONDS)
            assert answer["state"] in ("done", "busy"), answer
            freed += answer["state"] == "done"
            busy += answer["state"] == "busy"
            assert busy < 200 * releases, (
                answer
            )  # mostly far fewer, but for a machine without a free core
    return freed, busy


def check_end(worker, name, freed, busy):
    """The worker's own account: it did not abort, nothing overlapped, the tensors are intact."""
    line = worker.wait_line("end ")
    told = json.loads(line.removeprefix("end "))
    print(f"{name}: {freed} freed, {busy} busy, {told['done']} computed, {told['ops']} ops")
    assert told["overlaps"] == 0
    assert told["empties"] >= freed
    assert told["right"] is True
    return told


@two_sizes("releases", small=[35], whole=[350])
def test_a_server_with_plain_endpoints_under_load(workers, releases):
    # FastAPI runs plain `def` endpoints in a thread pool, uvicorn its loop on main.
    worker = workers.start_mps(f"ENOUGH = {releases // 4 + 1}" + START + """
import socket, uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.get("/compute/{n}")
def endpoint(n: int):
    count_done()
    return {"sum": compute(n)}
@app.get("/end")
async def end(): finish()
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen()
gc.freeze()
print("port", listener.getsockname()[1])
assert mpsbar.attach()
config = uvicorn.Config(app, log_level="warning")
uvicorn.Server(config).run(sockets=[listener])
""")  # fmt: skip
    url = f"http://127.0.0.1:{worker.wait_line('port').split()[1]}"
    stop, failures, answers = threading.Event(), [], []

    def load(pause):
        with httpx.Client(timeout=60) as client:
            while not stop.wait(pause):
                try:
                    answers.append(client.get(f"{url}/compute/{len(answers)}").status_code)
                except httpx.TransportError as error:
                    failures.append(error)

    clients = [threading.Thread(target=load, args=(pause,)) for pause in (0.01, 0.05)]
    for client in clients:
        client.start()
    try:
        freed, busy = free_many(worker, releases)
        worker.wait_line("enough")
    finally:
        stop.set()
        for client in clients:
            client.join()
    assert failures == []
    assert set(answers) == {200}
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{url}/end", timeout=60)
    told = check_end(worker, "server", freed, busy)
    assert told["done"] >= releases / 4


@two_sizes("releases", small=[35], whole=[350])
def test_an_event_loop_on_main_and_a_compute_thread(workers, releases):
    # As ComfyUI is built: prompts come in on main's loop and are computed on one thread.
    worker = workers.start_mps(f"ENOUGH = {releases // 4 + 1}" + START + """
prompts = queue.Queue()
def execute():
    while True:
        n = prompts.get()
        compute(n)
        count_done()
threading.Thread(target=execute, daemon=True).start()
async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, finish)
    assert mpsbar.attach()
    for n in range(10**9):
        prompts.put(n)
        await asyncio.sleep(random.random() / 20)
asyncio.run(main())
""")  # fmt: skip
    freed, busy = free_many(worker, releases)
    worker.wait_line("enough")
    worker.process.send_signal(signal.SIGUSR1)
    told = check_end(worker, "event loop", freed, busy)
    assert told["done"] >= releases / 4


@two_sizes("releases", small=[130], whole=[1300])
def test_a_backward_with_a_python_hook(workers, releases):
    # Kernels and hook run on autograd's own thread; main waits for it inside torch, without the GIL.
    worker = workers.start_mps(f"ENOUGH = {releases // 4 + 1}" + START + """
def hook(grad):
    count_done()
    time.sleep(0.0005)
    gate.wait(0.0005)  # the hook's thread stands in a known wait in the midst of backward
    return grad.clone()
gate = threading.Event()
weight.register_hook(hook)
signal.signal(signal.SIGUSR1, finish)
assert mpsbar.attach()
while True:
    (torch.ones(8, 64, device="mps") @ weight).relu().sum().backward()
    weight.grad = None
""")  # fmt: skip
    freed, busy = free_many(worker, releases)
    worker.wait_line("enough")
    worker.process.send_signal(signal.SIGUSR1)
    told = check_end(worker, "backward", freed, busy)
    assert told["done"] >= releases / 4


# Threads that compute, each between two waits in C of its kind; main waits likewise.
GROUPS = {
    "sleep": ("time.sleep(pause())", "time.sleep(0.01)"),
    "select": ("select.select([], [], [], pause())", "select.select([], [], [], 0.01)"),
    "lock": ("lock.acquire(timeout=pause())", "lock.acquire(timeout=0.01)"),
    "pipe": ("os.read(pipe, 1)", "os.write(other, b'.'); time.sleep(0.1)"),
    "queue": ("tasks.get()", "tasks.put(1); time.sleep(0.1)"),
}


@pytest.mark.parametrize("group", GROUPS)
@two_sizes("releases", small=[40], whole=[2000])
def test_threads_that_wait_in_c_between_their_operations(workers, group, releases):
    wait, on_main = GROUPS[group]
    worker = workers.start_mps("ENOUGH = 1" + START + f"""
import select
pipe, other = os.pipe()
tasks, lock = queue.SimpleQueue(), threading.Lock()
lock.acquire()
wrong = []
def pause():
    return random.random() / 5
def execute():
    while True:
        delay = pause()
        {wait.replace("pause()", "delay")}
        if compute(7) != expected: wrong.append(1)
        count_done()
def idle():
    while True:
        delay = pause()
        {wait.replace("pause()", "delay")}
for work in (execute, idle): threading.Thread(target=work, daemon=True).start()
ends = []
signal.signal(signal.SIGUSR1, lambda *_: ends.append(1))
assert mpsbar.attach()
while not ends: {on_main}
assert not wrong
finish()
""")  # fmt: skip
    freed, busy = free_many(worker, releases)
    worker.wait_line("enough")
    worker.process.send_signal(signal.SIGUSR1)
    told = check_end(worker, group, freed, busy)
    assert told["done"] > 0


# What Qt calls is torch's own function in C, without a frame, with moments in between.
QT = """
import functools
from BINDING import QtCore, QtWidgets
app = QtWidgets.QApplication([])
matrix = torch.ones(300, 300, device="mps")
result = torch.empty_like(matrix)
timer = QtCore.QTimer()
timer.setSingleShot(True)
timer.timeout.connect(functools.partial(torch.mm, matrix, matrix, out=result))
timer.timeout.connect(timer.start)  # from here on, so long as that took
def tell_once():
    timer.timeout.disconnect(tell_once)
    print("computed")
timer.timeout.connect(tell_once)
timer.start(50)
ending = os.pipe()
os.set_blocking(ending[1], False)
signal.set_wakeup_fd(ending[1])
signal.signal(signal.SIGUSR1, lambda *_: None)
def end():
    done[0] = int((result == 300).sum())
    finish()
notifier = QtCore.QSocketNotifier(ending[0], QtCore.QSocketNotifier.Type.Read)
notifier.activated.connect(lambda *_: end())
assert mpsbar.attach()
app.exec()
"""


@pytest.mark.parametrize("binding", ["PySide6", "PyQt6"])
@two_sizes("releases", small=[40], whole=[2000])
def test_operations_that_the_loop_of_qt_calls(workers, binding, releases):
    need_module(binding)
    worker = workers.start_mps(START + QT.replace("BINDING", binding), QT_QPA_PLATFORM="offscreen")
    freed, busy = free_many(worker, releases)
    worker.wait_line("computed")
    worker.process.send_signal(signal.SIGUSR1)
    told = check_end(worker, binding, freed, busy)
    assert told["done"] == 300 * 300
