"""What each allocator counts, and that devices that are not in use stay so."""

import subprocess
import sys

import pytest
from worker_kit import NO_MPS, UNPACED, Client, Worker, need_module, wait_for

needs_mps = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))

PUPPET = f"""
{UNPACED}
import mpsbar, sys
mpsbar.attach()
print("ready")
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class Puppet:
    """A worker whose main thread does what it is told; torch is imported already, or else later."""

    def __init__(self, workers, *, forked: bool = True, **extra: str) -> None:
        command = [sys.executable, "-c", PUPPET]
        popen = {"stdin": subprocess.PIPE}
        self.worker: Worker = workers.run(command, popen=popen, forked=forked, **extra)
        self.worker.wait_line("ready")

    def do(self, code: str) -> None:
        assert "\n" not in code
        self.worker.process.stdin.write(code.encode() + b"\n")
        self.worker.process.stdin.flush()
        self.worker.wait_line("done")

    def counters(self) -> dict[str, int]:
        self.do("print(dict(torch.ops.softmps.counters()))")
        return eval(self.worker.lines[-2])

    def backends(self, **params):
        return self.worker.ask("stats", **params)["backends"]


def mps_puppet(workers, **extra):
    return Puppet(workers, SOFTMPS="1", **extra)


def touched(counters: dict[str, int]) -> dict[str, int]:
    """The calls that construct the allocator or open the device."""
    names = (
        "is_available", "current_allocated", "driver_allocated", "recommended_max", "device_stats",
        "synchronize", "empty_cache", "allocator_empty_cache",
    )  # fmt: skip
    return {name: counters[name] for name in names if counters[name]}


@needs_mps
def test_torch_imported_later_than_the_agent_is_noticed(workers):
    puppet = mps_puppet(workers, forked=False)
    assert puppet.backends() == {}
    puppet.do("import torch")
    assert puppet.backends()["mps"] == {"framework": "torch", "state": "not initialised"}
    puppet.do("kept = torch.ones(1 << 20, device='mps')")
    assert puppet.backends()["mps"]["allocated"] == 4 << 20


@needs_mps
def test_an_mps_that_was_never_used_is_not_touched(workers):
    puppet = mps_puppet(workers)
    puppet.do("import torch")
    for hint in ({}, {"gpu_client": None}, {"gpu_client": True}, {"gpu_client": False}):
        assert puppet.backends(**hint)["mps"]["state"] == "not initialised"
        assert puppet.worker.ask("free", **hint)["state"] == "done"
        puppet.worker.count_tensors(**hint)
    assert touched(puppet.counters()) == {}
    puppet.do("print(torch._C._accelerator_isAllocatorInitialized())")
    assert "False\n" in puppet.worker.lines


@needs_mps
def test_mps_counters_mean_what_they_say(workers):
    puppet = mps_puppet(workers, SOFTMPS_GRAPHS="65536")
    puppet.do("import torch; a = torch.ones(1 << 18, device='mps')")
    puppet.do("b = torch.ones(1 << 18, device='mps'); del b")
    told = puppet.backends()["mps"]
    assert told["state"] == "in use"
    assert told["allocated"] == 1 << 20
    assert told["peak"] == 2 << 20
    assert told["reserved"] == 8 << 20  # one heap of the smallest class
    assert told["driver"] > told["reserved"]
    assert told["budget"] == 4 << 30
    counters = puppet.counters()
    assert counters["synchronize"] == counters["is_available"] == counters["empty_cache"] == 0


@needs_mps
@pytest.mark.parametrize("version", ["2.1", "2.4", "2.8", "2.9", "2.12"])
def test_before_2_13_nothing_is_read_without_a_hint(workers, version):
    puppet = mps_puppet(workers, SOFTMPS_TORCH=version)
    puppet.do("import torch")
    assert puppet.backends()["mps"]["state"] == "not known"
    assert puppet.backends(gpu_client=False)["mps"]["state"] == "not initialised"
    puppet.do("a = torch.ones(1 << 20, device='mps')")
    for wrong in ({}, {"gpu_client": None}, {"gpu_client": "yes"}, {"gpu_client": 1}):
        assert puppet.backends(**wrong)["mps"]["state"] == "not known"
    answer = puppet.worker.ask("free")
    assert (answer["state"], answer["not_known"]) == ("done", ["mps"])
    assert touched(puppet.counters()) == {}
    told = puppet.backends(gpu_client=True)["mps"]
    assert (told["state"], told["allocated"]) == ("in use", 4 << 20)
    assert told["driver"] > told["allocated"]
    assert told["reserved"] is told["peak"] is None
    assert told["budget"] == (None if version in ("2.1", "2.4") else 4 << 30)


@needs_mps
def test_a_forked_child_of_an_mps_process_does_not_touch_its_parents_device(workers):
    code = (
        "import os, torch; a = torch.ones(4, device='mps'); pid = os.fork(); "
        "pid or (mpsbar.attach(), __import__('time').sleep(600)); print('child', pid)"
    )
    puppet = mps_puppet(workers)
    puppet.backends()
    puppet.do(code)
    child = int(puppet.worker.lines[-2].split()[1])
    path = puppet.worker.run_dir / f"{child}.sock"
    wait_for(path.exists, "agent in the child")
    with Client(path) as client:
        assert client.ask("stats")["backends"]["mps"]["state"] == "not initialised"
    puppet.do(f"os.kill({child}, 9)")


def test_mlx_gives_its_cache_back_and_keeps_live_arrays(workers):
    need_module("mlx")
    puppet = Puppet(workers, forked=False)
    puppet.do("import mlx.core as mx; mx.set_cache_limit(1 << 30)")
    puppet.do("a = [mx.full((1 << 20,), float(i)) for i in range(20)]; mx.eval(a)")
    puppet.do("del a[5:]")
    told = puppet.backends()["mlx"]
    assert told["allocated"] >= 20 << 20
    cached = told["reserved"] - told["allocated"]
    assert cached >= 60 << 20
    assert told["peak"] >= 80 << 20
    answer = puppet.worker.ask("free")
    assert (answer["state"], answer["freed"]) == ("done", cached)
    after = puppet.backends()["mlx"]
    assert after["reserved"] == after["allocated"] == told["allocated"]
    puppet.do("print([x[-1].item() for x in a])")
    assert puppet.worker.lines[-2] == "[0.0, 1.0, 2.0, 3.0, 4.0]\n"


@needs_mps
def test_several_at_once_each_under_its_own_name(workers):
    need_module("mlx")
    puppet = mps_puppet(workers)
    puppet.do("import torch, mlx.core as mx; mx.set_cache_limit(1 << 30)")
    puppet.do("a = torch.ones(4, device='mps'); b = mx.ones((1 << 20,)); mx.eval(b)")
    told = puppet.worker.ask("stats")
    assert {name: b["state"] for name, b in told["backends"].items()} == {
        "mps": "in use",
        "mlx": "in use",
        "cpu": "in use",
    }
    assert set(told["frameworks"]) == {"torch", "mlx"}
    assert told["backends"]["mlx"]["framework"] == "mlx"


def test_cpu_counts_nothing_but_gives_pages_back(workers):
    puppet = Puppet(workers)
    puppet.do("import torch")
    told = puppet.backends()["cpu"]
    assert {told[name] for name in ("allocated", "reserved", "driver", "peak")} == {None}
    # Small blocks come from malloc's arena; one kept at its end pins it until it is trimmed.
    puppet.do("a = [torch.ones(1024) for _ in range(50000)]; a = a[-1:]")
    answer = puppet.worker.ask("free")
    assert answer["state"] == "done"
    assert answer["freed"] > 50 << 20
    report = answer["backends"]["cpu"]
    assert report["freed"] == report["before"] - report["after"]


def test_a_plain_linux_torch_has_neither_mps_nor_cuda(workers):
    puppet = Puppet(workers)
    puppet.do("import torch")
    assert set(puppet.backends()) == {"cpu"}


# No CUDA is here. The double sits at torch._C: torch.cuda's own Python runs unmodified.
CUDA = """
import torch, types
C = torch._C
calls = C.calls = []
C._cuda_getDeviceCount = lambda: 2
C._cuda_isInBadFork = False
C._cuda_emptyCache = lambda: calls.append("emptyCache")
def stats(device):
    calls.append(f"stats {device}")
    zero = lambda: {"all": dict(current=0, peak=0, allocated=0, freed=0)}
    cached = 0 if "emptyCache" in calls else 500
    found = {"allocated_bytes": zero(), "reserved_bytes": zero()}
    found["allocated_bytes"]["all"].update(current=100 + device, peak=300)
    found["reserved_bytes"]["all"].update(current=100 + device + cached)
    return found
C._cuda_memoryStats = stats
torch.cuda._is_compiled = lambda: True
torch.cuda.device_count = lambda: 2
torch.cuda.get_device_properties = lambda index: types.SimpleNamespace(total_memory=1000)
"""


def test_cuda_is_read_only_once_it_is_initialised(workers, tmp_path):
    (tmp_path / "cuda_double.py").write_text(CUDA)
    puppet = Puppet(workers)
    puppet.do(f"sys.path.insert(0, {str(tmp_path)!r}); import torch, cuda_double")
    assert puppet.backends()["cuda"] == {"framework": "torch", "state": "not initialised"}
    assert puppet.worker.ask("free")["state"] == "done"
    puppet.do("print(torch._C.calls)")
    assert puppet.worker.lines[-2] == "[]\n"
    puppet.do("torch.cuda._initialized = True")
    assert puppet.backends()["cuda"] == {
        "framework": "torch", "state": "in use", "allocated": 201, "reserved": 1201, "peak": 600,
        "driver": None, "budget": 2000,
    }  # fmt: skip
    answer = puppet.worker.ask("free")
    assert answer["backends"]["cuda"] == {"freed": 1000, "before": 1201, "after": 201}


def test_on_macos_mlx_is_not_read_before_the_process_is_a_gpu_client(monkeypatch):
    from mpsbar.agent.backends import mlx

    monkeypatch.setattr(mlx, "loaded", lambda name: object())
    monkeypatch.setattr(mlx, "_ON_METAL", True)
    states = [mlx.state(hint) for hint in (None, False, True)]
    assert states == ["not known", "not initialised", "in use"]


def test_on_macos_malloc_tells_itself_what_it_gave_back(monkeypatch):
    import ctypes

    from mpsbar.agent.backends import cpu
    from mpsbar.agent.free import FreeJob

    class Libc:
        """macOS: size_t malloc_zone_pressure_relief(malloc_zone_t *zone, size_t goal)."""

        @staticmethod
        def malloc_zone_pressure_relief(zone, goal):
            # A c_size_t would make an object that the collector counts; ctypes widens a plain 0.
            assert (zone, goal, type(goal)) == (None, 0, int)
            return 12345

    monkeypatch.setattr(cpu.sys, "platform", "darwin")
    monkeypatch.setattr(cpu, "measure", lambda: None)
    monkeypatch.setattr(cpu, "_LIBRARY", Libc)
    assert FreeJob(None)._release_anywhere(cpu) == {"freed": 12345, "before": None, "after": None}
    relief = Libc.malloc_zone_pressure_relief
    assert relief.restype is ctypes.c_size_t


def test_a_malloc_without_trim_is_an_answer(monkeypatch):

    from mpsbar.agent.backends import cpu
    from mpsbar.agent.free import FreeJob

    monkeypatch.setattr(cpu, "_LIBRARY", object())
    report = FreeJob(None)._release_anywhere(cpu)
    assert report == {"freed": None, "error": "this system's malloc has no malloc_trim"}
