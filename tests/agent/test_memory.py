"""mpsbar.memory(): this process's numbers, the same as the monitor has them, and nothing touched."""

import json
import sys

import interpreters
import pytest
from fork_server import run_fresh, run_python
from worker_kit import NO_MPS, ROOT, TIMEOUT, need_module

needs_mps = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
SHOW = "import json; print(json.dumps(mpsbar.memory()))\n"


def run(workers, code, *, python=sys.executable, **extra):
    env = workers.env(PYTHONPATH=str(ROOT), **extra)
    start = run_python if "torch" in code else run_fresh
    done = start([python, "-B", "-c", code], env=env, cwd="/", timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("version", interpreters.VERSIONS)
def test_without_a_framework_only_what_the_system_knows(workers, version):
    python = interpreters.need(version)
    assert run(workers, f"import mpsbar\n{SHOW}", python=python).keys() <= {"resident"}


def test_mlx(workers):
    need_module("mlx")
    code = "import mpsbar, mlx.core as mx\nx = mx.ones((1 << 20,)); mx.eval(x)\n"
    found = run(workers, code + SHOW)
    assert found["allocated"] == 4 << 20
    assert found["held"] == found["reserved"] == found["allocated"] + found["cached"]
    assert not {"driver", "budget", "other"} & found.keys()  # MLX does not tell


@needs_mps
def test_mps_and_a_prefix(workers):
    code = "import json, mpsbar, torch\nx = torch.ones(1 << 20, device='mps')\n"
    show = "print(json.dumps(mpsbar.memory('gpu/')))"
    found = run(workers, code + show, SOFTMPS="1")
    assert found["gpu/allocated"] == 4 << 20
    assert found["gpu/held"] == found["gpu/driver"]
    assert found["gpu/driver"] == found["gpu/reserved"] + found["gpu/other"]


@needs_mps
def test_a_device_that_is_not_in_use_stays_so(workers):
    code = "import mpsbar, torch\nmpsbar.memory()\nassert not torch._C._mps_isInitialized() if hasattr(torch._C, '_mps_isInitialized') else True\n"
    assert run(workers, code + SHOW, SOFTMPS="1").keys() <= {"resident"}


@needs_mps
def test_the_same_numbers_as_the_monitor_gets(workers):
    worker = workers.start_mps(
        """
        import json, mpsbar, torch, time
        x = torch.ones(1 << 20, device="mps")
        assert mpsbar.attach()
        print(json.dumps(mpsbar.memory()), flush=True)
        time.sleep(3600)
        """
    )
    told = json.loads(worker.wait_line("allocated"))
    asked = worker.ask("stats")["backends"]["mps"]
    for name in ("allocated", "reserved", "driver", "peak", "budget"):
        assert told.get(name) == asked[name]


def test_a_thousand_times_a_second_leaves_nothing_behind(workers):
    """Objects that stay would be a leak in somebody's training run."""
    need_module("mlx")
    code = """
import gc, json, mpsbar, mlx.core as mx
x = mx.ones((8,)); mx.eval(x)
for _ in range(100): mpsbar.memory()
gc.collect(); before = len(gc.get_objects())
for _ in range(10_000): mpsbar.memory()
gc.collect(); print(json.dumps(len(gc.get_objects()) - before))
"""
    assert run(workers, code) <= 2
