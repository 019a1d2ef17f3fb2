"""A worker of a chosen Python is started, freed and judged."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import interpreters
import psutil
import pytest
from doctor.self_test_kit import doctor
from worker_kit import need_module

from mpsbar.doctor.self_test import worker_trial
from mpsbar.doctor.self_test.worker_trial import WorkerTrial, describe
from mpsbar.system.platform import GpuClient
from mpsbar.ui.text.wording import duration

TRIAL = WorkerTrial(
    "2.13.0", "mps", False, True, 1 << 30, 1 << 29, 1 << 28, 1 << 29, "done", 1.0, 0.25
)


def test_a_worker_is_tried_and_what_it_freed_is_in_the_readings(workers, private):
    """On the software MPS device: connected by `mpsbar run`'s way in, freed, ended."""
    need_module("softmps")
    env = workers.env(SOFTMPS="1")
    done = doctor("--python", sys.executable, "--share", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "a process with torch" in line]
    assert line.startswith("  pass  a process with torch is connected and freed: torch 2.")
    readings = json.loads(done.stdout[done.stdout.index("\n{") :])
    assert (readings["worker"]["device"], readings["worker"]["state"]) == ("mps", "done")
    assert readings["worker"]["freed"] > 1 << 26
    # It ran once: the line above tells of the same Free.
    assert f"in {duration(readings['worker']['free_seconds'])}; GPU client" in line
    assert "worker" not in readings["seconds"]
    # On a busy machine it is killed before it has ended by itself, and leaves its file.
    assert not [
        path for path in workers.run_dir.glob("*.sock") if psutil.pid_exists(int(path.stem))
    ]


def test_what_is_wrong_with_a_worker_is_a_fault():
    assert describe(TRIAL).endswith("GPU client before its first work: no, after: yes")
    assert "GPU client" not in describe(replace(TRIAL, device="cpu"))
    for change, words in (
        ({"state": "busy"}, "freeing its cache ended with busy"),
        ({"freed": 0}, "nothing was freed"),
        ({"client_before": True}, "before it had submitted any work"),
    ):
        with pytest.raises(ValueError, match=words):
            describe(replace(TRIAL, **change))


def test_a_python_without_torch_is_a_fault_of_one_line(workers, private):
    python = interpreters.need("3.12")
    done = doctor("--python", str(python), env=workers.env())
    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if "FAIL" in line]
    assert "has no torch, or it failed" in line


@pytest.mark.parametrize(
    ("worked", "is_client"),
    [((), False), ((False,), False), ((False, True), True), ((False, None), None)],
)
def test_who_is_a_client_of_the_gpu(monkeypatch, worked, is_client):
    """One that only opened it is none."""
    clients = {n: GpuClient(7, 0, each) for n, each in enumerate(worked)}
    computer = SimpleNamespace(read_gpu_clients=lambda: {99: GpuClient(8, 5, True)} | clients)
    monkeypatch.setattr(worker_trial, "this_computer", lambda: computer)
    assert worker_trial._find_client(7) is is_client
    computer.read_gpu_clients = lambda: None
    assert worker_trial._find_client(7) is None


def test_the_active_environment_is_tried_else_what_a_mac_has(monkeypatch, tmp_path):
    monkeypatch.setattr(worker_trial, "find_installed", lambda home: ["/opt/a/bin/python", "/b"])
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.setenv(variable, "/env")
        assert worker_trial.find_torch_python() == "/env/bin/python"
        monkeypatch.delenv(variable)
    assert worker_trial.find_torch_python() is None
    monkeypatch.setattr(worker_trial, "sys", SimpleNamespace(platform="darwin"))
    assert worker_trial.find_torch_python() == "/opt/a/bin/python"
    monkeypatch.setattr(worker_trial, "find_installed", lambda home: [])
    assert worker_trial.find_torch_python() is None
