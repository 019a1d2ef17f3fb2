"""A job on the main thread in every Python a worker may have, and at its prompt.

torch is to be had for one of them only, so `torch` here is a STAND-IN: a folder with the few names
the agent uses, all plain Python. It proves the turn and nothing about MPS.
"""

import os
import pty
import select
import signal
import sys
import textwrap
import time

import interpreters
import pytest
from worker_kit import NO_MPS, ROOT, TIMEOUT, Client, wait_for

MiB = 1 << 20
STAND_IN = {
    "__init__.py": '''
        """Not torch: a stand-in for the tests of mpsbar."""
        import time
        from . import mps
        __version__ = "2.13.0"
        class Tensor: pass
        class _C:
            _has_mps = True
            @staticmethod
            def _accelerator_isAllocatorInitialized(): return True
        def step(seconds):
            """All its time is inside this folder."""
            end = time.monotonic() + seconds
            while time.monotonic() < end: pass
    ''',
    "mps.py": """
        import sys, threading, time
        driver = 64 << 20
        slow = 0.0
        released_on = []
        def driver_allocated_memory(): return driver
        def empty_cache():
            global driver
            released_on.append(threading.current_thread().name)
            end = time.monotonic() + slow
            if slow: print("releasing", flush=True)
            while time.monotonic() < end: pass
            driver = 16 << 20
    """,
}
START = """
import gc, os, queue, signal, subprocess, sys, threading, time
import torch, mpsbar
assert mpsbar.attach()
"""
STATES = {
    "a busy loop": ("while True: time.time()", True),
    "torch nearly all the time": ("while True: torch.step(0.01); sum(range(20000))", True),
    "torch and nothing else": ("while True: torch.step(0.01)", True),
    "queue.get": ("queue.Queue().get()", False),
    "join": (
        "t = threading.Thread(target=threading.Event().wait, daemon=True); t.start(); t.join()",
        False,
    ),
    "Popen.wait": ('subprocess.Popen(["cat"], stdin=subprocess.PIPE).wait()', False),
    "an idle event loop": ("asyncio.run(asyncio.sleep(1000))", True),
    "its end": ("threading.Thread(target=queue.Queue().get).start()", False),
}

every_python = pytest.mark.parametrize("version", interpreters.VERSIONS)


@pytest.fixture
def path(tmp_path):
    """PYTHONPATH with the stand-in and mpsbar."""
    folder = tmp_path / "torch"
    folder.mkdir()
    for name, text in STAND_IN.items():
        (folder / name).write_text(textwrap.dedent(text))
    return f"{tmp_path}{os.pathsep}{ROOT}"


def start(workers, version, path, code):
    script = workers.folder / f"worker{len(workers.started)}.py"
    # Only where it is used: its import costs as much as the rest of a start.
    imports = "import asyncio" if "asyncio.run" in code else ""
    script.write_text(imports + START + code)
    command = [interpreters.need(version), "-W", "error", str(script)]
    # `run` sets PYTHONPATH itself; the stand-in must come first.
    launcher = ["env", f"PYTHONPATH={path}", *command]
    return workers.run(launcher).wait_attached()


@every_python
@pytest.mark.parametrize("where", STATES)
def test_freed_while_main_is_in(workers, path, version, where):
    if where == "torch and nothing else" and version == "3.9":
        pytest.skip("Python 3.9 does not tell when a frame returns, so main is only met by chance")
    code, on_main = STATES[where]
    worker = start(workers, version, path, code)
    report = worker.ask("free")["backends"]["mps"]
    assert report["freed"] == 48 * MiB
    # The first may have met main on its way there.
    wait_for(lambda: worker.ask("free")["backends"]["mps"]["on_main"] is on_main, where)
    assert worker.end() == ""


@every_python
@pytest.mark.parametrize("main", ["spin()", "asyncio.run(wait())"])
def test_ctrl_c_during_a_long_free_is_the_hosts_own_keyboard_interrupt(
    workers, path, version, main
):
    worker = start(workers, version, path, f"""
# "slow" is said where the Free is to find main: a Ctrl-C while asyncio makes its loop leaves sockets open.
def spin():
    print("slow", flush=True)
    while True: time.time()
async def wait():
    print("slow", flush=True)
    await asyncio.sleep(1000)
def interrupt(*_): raise KeyboardInterrupt
signal.signal(signal.SIGINT, interrupt)  # asyncio would make a cancellation of it
torch.mps.slow = 60
try: {main}
except BaseException as error:
    end = time.monotonic() + 60  # until the agent has cleaned up
    while sys.getswitchinterval() != 0.005 and time.monotonic() < end: time.sleep(0.01)
    print("got", repr(error), error.__context__, sys.getswitchinterval(), gc.isenabled())
queue.Queue().get()
""")  # fmt: skip
    worker.wait_line("slow")
    with worker.connect() as client:
        client.send("free")
        worker.wait_line("releasing")
        worker.process.send_signal(signal.SIGINT)
        answer = client.receive()["result"]
    assert answer["backends"]["mps"]["error"] == "the process was interrupted meanwhile"
    assert worker.wait_line("got") == "got KeyboardInterrupt() None 0.005 True"
    assert worker.end() == ""


class Terminal:
    """A Python at its prompt, on a terminal of its own."""

    def __init__(self, command, env):
        self.pid, self.file = pty.fork()
        if not self.pid:
            os.execvpe(command[0], command, env)
        self.text = ""

    def wait(self, text):
        """Until `text` appears after what was waited for before."""
        deadline = time.monotonic() + TIMEOUT
        while text not in self.text:
            assert select.select([self.file], [], [], deadline - time.monotonic())[0], self.text
            self.text += os.read(self.file, 4096).decode(errors="replace")
        self.text = self.text.partition(text)[2]

    def type(self, line):
        os.write(self.file, line.encode() + b"\r")

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.file)


@every_python
@pytest.mark.parametrize("terminal", ["xterm", "dumb"])  # 3.13's own prompt needs a capable one
def test_freed_at_pythons_prompt(workers, path, version, terminal):
    python = interpreters.need(version)
    env = workers.env(
        PYTHONPATH=path, TERM=terminal, PYTHON_HISTORY=os.devnull, HOME="/nonexistent"
    )
    shell = Terminal([python, "-q", "-W", "error"], env)
    try:
        shell.wait(">>> ")
        shell.type("import torch, mpsbar; print('att' + 'ached', mpsbar.attach())")
        shell.wait("attached True")
        shell.wait(">>> ")
        assert free_at(workers, shell.pid)["freed"] == 48 * MiB
        report = wait_for(lambda: not free_at(workers, shell.pid)["on_main"], "main in its wait")
        assert report is True
        shell.type("print('still ' + 'here', 6 * 7)")
        shell.wait("still here 42")
        assert "rror" not in shell.text
    finally:
        shell.end()


@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
def test_real_torch_is_freed_at_the_prompt_and_computes_on(workers):
    env = workers.env(PYTHONPATH=str(ROOT), TERM="xterm", HOME="/nonexistent", SOFTMPS="1")
    shell = Terminal([sys.executable, "-q"], env)
    try:
        shell.wait(">>> ")
        shell.type("import torch, mpsbar; x = torch.arange(64, device='mps')")
        shell.wait(">>> ")
        shell.type(
            "torch.ones(1 << 20, device='mps').sum(); print('att' + 'ached', mpsbar.attach())"
        )
        shell.wait("attached True")
        shell.wait(">>> ")
        assert free_at(workers, shell.pid)["freed"] >= 32 * MiB
        shell.type("print('sum', x.sum().item(), torch.ops.softmps.counters()['overlaps'])")
        shell.wait("sum 2016 0")
    finally:
        shell.end()


def free_at(workers, pid):
    with Client(workers.run_dir / f"{pid}.sock") as client:
        answer = client.ask("free")
        assert answer["state"] == "done", answer
        return answer["backends"]["mps"]
