"""Ends under a launcher: a real kernel that Jupyter restarts, and the ranks of a real torchrun."""

import contextlib
import sys

import pytest
from agent.test_notebook import Kernel
from cli.test_run import RUN
from worker_kit import TIMEOUT, wait_for

from endings.campaign import find_library
from mpsbar.core.events import EndedProcess
from mpsbar.monitor import Monitor
from mpsbar.system.last_words import find_last_words

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def watch():
    """Ticks a real monitor until these pids have ended; returns their ends."""
    monitor, ends = Monitor(), {}

    def tick():
        for event in monitor.tick().events:
            if isinstance(event.what, EndedProcess):
                ends[event.what.pid] = event.what

    def wait_connected(*pids):
        def are_seen():
            tick()
            return set(pids) <= {w.pid for w in monitor.latest.workers if w.process}

        wait_for(are_seen, f"the workers {pids} in the snapshot")

    def wait_ended(*pids):
        def are_ended():
            tick()
            return set(pids) <= set(ends)

        wait_for(are_ended, f"the ends of {pids}")
        return [ends[pid] for pid in pids]

    monitor.tick()
    yield wait_connected, wait_ended
    monitor.close()


@pytest.mark.parametrize("is_killed", [False, True], ids=["asked", "killed"])
def test_a_kernel_that_jupyter_restarts(workers, watch, is_killed):
    """A failed cell is no cause of the end. One that is killed says nothing, which is evidence."""
    if (library := find_library(workers)) is None:
        pytest.skip("no C compiler here")
    wait_connected, wait_ended = watch
    kernel = Kernel(workers)
    try:
        kernel.run(f"%load_ext mpsbar\nimport ctypes; ctypes.CDLL({str(library)!r})")
        kernel.run("raise ValueError('a cell')")
        pid = kernel.pid
        wait_connected(pid)
        kernel.client.stop_channels()
        kernel.manager.shutdown_wait_time = (
            TIMEOUT  # then it is killed, by default after five seconds
        )
        kernel.manager.restart_kernel(now=is_killed)
        kernel.connect()
        assert kernel.pid != pid
        (end,) = wait_ended(pid)
        words = find_last_words(pid, end.started)
        if is_killed:
            assert words is None
            assert (end.verdict.code, end.verdict.values["signal"]) == ("killed", 9)
        else:
            assert (words.error.type, words.error.is_main) == ("ValueError", False)
            assert (end.verdict.code, end.verdict.sure) == ("finished", "known")
            kernel.run("%load_ext mpsbar")  # in the new one
            said = kernel.run("%mpsbar why")
            assert said.startswith("notebook kernel exited; its exit code is unknown.")
            assert f"notebook kernel ({pid}), ended " in said
    finally:
        kernel.end()


def test_ranks_of_torchrun(workers, watch):
    """One raises, torchrun ends the other: the first has its exception, the other is its victim."""
    wait_connected, wait_ended = watch
    folder = workers.folder
    (folder / "rank.py").write_text(
        "import os, time, torch\n"
        "rank = os.environ['RANK']\n"
        "with open(f'rank{rank}.part', 'w') as file: print(os.getpid(), file=file)\n"
        "os.rename(file.name, file.name[:-5])\n"
        "while not os.path.exists('stop'): time.sleep(0.1)\n"
        "if rank == '1': raise ValueError('bad batch')\n"
        "time.sleep(600)\n"
    )
    command = [
        *RUN, sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "rank.py",
    ]  # fmt: skip
    launcher = workers.run(command, popen={"cwd": folder}, OMP_NUM_THREADS="1")
    try:
        for rank in ("rank0", "rank1"):
            wait_for((folder / rank).exists, rank)
        pids = [int((folder / rank).read_text()) for rank in ("rank0", "rank1")]
        wait_connected(*pids, launcher.pid)
        (folder / "stop").touch()
        assert launcher.process.wait(TIMEOUT) == 1
        victim, culprit, parent = (end.verdict for end in wait_ended(*pids, launcher.pid))
        assert (culprit.code, culprit.sure) == ("exception", "known")
        assert (culprit.values["type"], culprit.values["text"]) == ("ValueError", "bad batch")
        assert (victim.code, victim.sure, victim.values["signal"]) == ("other_rank", "likely", 15)
        assert str(pids[1]) in victim.values["rank"]
        assert (parent.code, parent.values["code"]) == ("exception", 1)
        assert parent.values["type"].endswith("ChildFailedError")
        assert find_last_words(pids[0], None) is None  # SIGTERM: Python did not end by itself
    finally:
        with contextlib.suppress(ProcessLookupError):
            launcher.process.kill()
