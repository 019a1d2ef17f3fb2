"""In every kind of process: fork, spawn, DataLoader, torchrun, a notebook's kernel."""

import json
import sys
from pathlib import Path

import pytest
from device_child import CHILD_TIMEOUT_S, answer_of, environment, run_child
from fork_server import run_python


def test_off_it_does_nothing(usable: None) -> None:
    code = """
    import json, sys, torch
    loaded = sorted(name for name in sys.modules if name.startswith("softmps"))
    print(json.dumps([loaded, torch._C._has_mps, torch.backends.mps.is_available()]))
    """
    assert answer_of(code, SOFTMPS="0") == [["softmps"], False, False]


def test_on_torch_says_so_everywhere(usable: None) -> None:
    assert answer_of("""
    import json, torch
    print(json.dumps([
        torch.backends.mps.is_built(), torch.backends.mps.is_available(), torch.mps.is_available(),
        torch.mps.device_count(), torch.accelerator.current_accelerator().type,
        torch.backends.mps.get_name(), torch.backends.mps.get_core_count(),
        torch.backends.mps.is_macos_or_newer(15, 0), torch.backends.mps.is_macos_or_newer(26, 0),
        torch.ops.softmps.counters()["initialised"],
    ]))
    """) == [True, True, True, 1, "mps", "Apple M0 (softmps)", 1, True, False, 0]


FORK = """
import os, threading, time, torch
ops = torch.ops.softmps
# What torch works out at its first CPU kernel is guarded by a lock of C++, which a child that is
# forked in that very moment (another thread runs what was queued) would wait for in vain.
torch.ones(2).uniform_()
def child(label):
    pid = os.fork()
    if pid:
        assert os.waitpid(pid, 0)[1] == 0, label
        return
    net = torch.nn.Linear(2, 2).to("mps")
    net(torch.ones(2, 2, device="mps")).sum().backward()
    ops.work_(net.weight.detach(), 0.01)
    torch.mps.synchronize()
    torch.mps.empty_cache()  # on the main thread of this process: level 2 would say otherwise
    os._exit(0 if net.weight.grad[0, 0].item() == 2 and ops.counters()["off_main"] == 0 else 3)
"""


def test_fork(usable: None) -> None:
    done = run_child(
        FORK
        + """
child("before the first use")
x = torch.ones(4, device="mps")
torch.mps.is_available()
assert not torch.mps._is_in_bad_fork()
child("after it")
ops.work_(x, 0.5)
child("with work queued")
busy = threading.Thread(target=ops.busy_, args=(x, 1.0))
busy.start()
while not ops.counters()["in_flight"]:
    time.sleep(0.01)
child("while another thread is in an op")
busy.join()
print((x + 1).tolist())
""",
        SOFTMPS_QUEUE="1",
        SOFTMPS_STRICT="2",
    )
    assert (done.returncode, done.stdout) == (0, "[2.0, 2.0, 2.0, 2.0]\n"), done.stderr


def test_bad_fork_is_reported_by_torch(usable: None) -> None:
    assert (
        answer_of("""
    import os, torch
    torch.backends.mps.is_available()
    pid = os.fork()
    if pid == 0:
        torch.manual_seed(1)
        os._exit(10 + torch.mps._is_in_bad_fork())
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """)
        == 11
    )


def write_script(folder: Path, text: str) -> str:
    script = folder / "script.py"
    script.write_text(text)
    return str(script)


def run_script(script: str, **switches: str) -> str:
    """The processes that it starts are what is tested; it may have torch already."""
    command = [sys.executable, script]
    done = run_python(command, env=environment(switches), cwd=Path.cwd(), timeout=CHILD_TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_spawn(usable: None, tmp_path: Path) -> None:
    script = write_script(
        tmp_path,
        """
import torch
import torch.multiprocessing as mp
def work(queue):
    queue.put((torch.ones(3, device="mps") * 2).tolist())
if __name__ == "__main__":
    torch.ones(1, device="mps")
    context = mp.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(queue.get(timeout=200))
    process.join()
""",
    )
    assert run_script(script) == "[2.0, 2.0, 2.0]\n"


def test_data_loader(usable: None, tmp_path: Path) -> None:
    script = write_script(
        tmp_path,
        """
import torch
from torch.utils.data import DataLoader, Dataset
class Numbers(Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, index):
        return torch.full((2,), float(index))
if __name__ == "__main__":
    total = torch.zeros(2, device="mps")
    for batch in DataLoader(Numbers(), 4, num_workers=2):
        total += batch.to("mps").sum(0)
    torch.mps.empty_cache()
    print(total.tolist())
""",
    )
    assert run_script(script) == "[66.0, 66.0]\n"


def test_torchrun(usable: None, tmp_path: Path) -> None:
    script = write_script(
        tmp_path,
        f"""
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
value = (torch.ones(2, device="mps") * (rank + 1)).cpu()
dist.all_reduce(value)
open(f"{tmp_path}/rank{{rank}}", "w").write(str(value.to("mps").tolist()))
dist.destroy_process_group()
""",
    )
    launch = tmp_path / "launch.py"
    launch.write_text(
        "from torch.distributed.run import main\n"
        f"main(['--standalone', '--local-addr=127.0.0.1', '--nproc-per-node=2', {script!r}])\n"
    )
    run_script(str(launch), GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    for rank in range(2):
        assert (tmp_path / f"rank{rank}").read_text() == "[3.0, 3.0]"


def test_jupyter_kernel(usable: None, tmp_path: Path) -> None:
    manager = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    env = environment({"IPYTHONDIR": str(tmp_path), "JUPYTER_RUNTIME_DIR": str(tmp_path)})
    kernel, client = manager.start_new_kernel(
        kernel_name="python3", startup_timeout=CHILD_TIMEOUT_S, env=env
    )
    try:
        said: list[str] = []
        client.execute_interactive(
            "import torch; x = torch.ones(2, device='mps'); print((x + 1).tolist())",
            timeout=CHILD_TIMEOUT_S,
            output_hook=lambda message: said.append(json.dumps(message["content"])),
        )
        assert any("[2.0, 2.0]" in text for text in said), said
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
