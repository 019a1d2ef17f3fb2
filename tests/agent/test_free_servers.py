"""Processes people leave open, real ones: an idle notebook kernel and an idle server are freed."""

import httpx
import pytest
from jupyter_client.manager import KernelManager
from worker_kit import NO_MPS, ROOT, TIMEOUT, Client, wait_for

pytestmark = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))

MiB = 1 << 20
CELL = """
import os, torch, mpsbar
x = torch.arange(64, device="mps")
torch.ones(1 << 20, device="mps")
print("pid", os.getpid(), mpsbar.attach())
"""


class Kernel:
    """A notebook's kernel as Jupyter starts it, cells run one at a time."""

    def __init__(self, folder, env):
        # Not TCP: between the choice of a port and its use another process may get it.
        place = f"{folder}/kernel"
        self.manager = KernelManager(connection_file=f"{place}.json", transport="ipc", ip=place)
        self.manager.start_kernel(env=env)
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=TIMEOUT)

    def run(self, code):
        """What the cell printed; it must end without an error."""
        printed = []

        def note(message):
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])

        reply = self.client.execute_interactive(code, output_hook=note, timeout=TIMEOUT)
        assert reply["content"]["status"] == "ok", reply["content"]
        return "".join(printed)

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(workers):
    started = Kernel(
        workers.folder, workers.env(PYTHONPATH=str(ROOT), SOFTMPS="1", SOFTMPS_STRICT="1")
    )
    yield started
    started.end()


def test_an_idle_notebook_kernel_is_freed_on_main_and_runs_on(workers, kernel):
    pid, attached = kernel.run(CELL).split()[1:]
    assert attached == "True"
    with Client(workers.run_dir / f"{pid}.sock") as client:
        wait_for(lambda: client.ask("free")["backends"]["mps"].get("on_main"), "an idle kernel")
        kernel.run("torch.ones(1 << 20, device='mps')\nNone")
        answer = client.ask("free")
        assert answer["state"] == "done", answer
        assert answer["backends"]["mps"]["freed"] >= 32 * MiB
        wait_for(lambda: client.ask("tensors")["state"] == "done", "a count of tensors")
    told = "print(x.sum().item(), torch.ops.softmps.counters()['overlaps'])"
    assert kernel.run(told) == "2016 0\n"


def test_a_notebook_cell_in_its_loop_is_freed_too(workers, kernel):
    pid = kernel.run(CELL).split()[1]
    kernel.client.execute("while not torch.ops.softmps.counters()['empties']: x + 1")
    with Client(workers.run_dir / f"{pid}.sock") as client:
        answer = client.ask("free")
        assert answer["state"] == "done", answer
        assert answer["backends"]["mps"]["on_main"] is True
    assert kernel.run("print(x.sum().item())") == "2016\n"


def test_an_idle_server_is_freed_and_answers_on(workers):
    worker = workers.start_mps("""
import socket, torch, uvicorn, mpsbar
from fastapi import FastAPI
x = torch.arange(64, device="mps")
torch.ones(1 << 20, device="mps")
app = FastAPI()
@app.get("/sum")
def endpoint(): return x.sum().item()
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen()
print("port", listener.getsockname()[1])
assert mpsbar.attach()
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
""")
    url = f"http://127.0.0.1:{worker.wait_line('port').split()[1]}/sum"
    assert httpx.get(url, timeout=TIMEOUT).json() == 2016  # its pool has an idle thread now
    report = worker.ask("free")["backends"]["mps"]
    assert report["on_main"] is True
    assert report["freed"] >= 32 * MiB
    assert httpx.get(url, timeout=TIMEOUT).json() == 2016
    assert worker.end() == ""
