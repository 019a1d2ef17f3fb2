"""mpsbar doctor --self-test: on Linux what can be, on the double of a Mac the rest."""

import json
import os
import sys
from types import SimpleNamespace

import pytest
from doctor.self_test_kit import doctor

from mpsbar import __version__
from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Machine, Problem
from mpsbar.core.snapshot import Worker
from mpsbar.doctor.self_test import checks as self_checks
from mpsbar.doctor.self_test import mac_checks
from mpsbar.doctor.self_test.text import FOR_PEOPLE


@pytest.mark.skipif(sys.platform == "darwin", reason="there more is checked")
def test_on_linux_it_passes_and_says_what_it_cannot_check(workers, private):
    done = doctor("--json", env=workers.env())
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)["checks"]
    states = {row["check"]: row["state"] for row in rows}
    common = ("resources", "folders", "settings", "agent", "machine", "process")
    assert {states[key] for key in common} == {"pass"}
    assert {states[key] for key in mac_checks.CHECKS} == {"skip"}
    assert {key for key, state in states.items() if state == "manual"} == set(FOR_PEOPLE)
    details = {row["check"]: row["detail"] for row in rows if row["state"] == "skip"}
    assert details.pop("worker") == "no_torch"
    assert set(details.values()) == {"not_a_mac"}


def test_a_fault_is_reported_and_the_exit_code_says_so(workers, private):
    done = doctor(env=workers.env(MPSBAR_DISABLE="1"))
    assert done.returncode == 1
    assert (
        "  FAIL  an agent starts and answers: RuntimeError: MPSBAR_DISABLE is set\n" in done.stdout
    )
    assert ", 1 failed, " in done.stdout.splitlines()[-3]


@pytest.mark.starts_processes
def test_every_check_has_a_title(monkeypatch):
    from mpsbar.doctor.self_test.text import _title

    monkeypatch.setenv("MPSBAR_DISABLE", "1")  # else an agent stays in this process
    keys = {check.key for check in self_checks.check_all() if check.state != "manual"}
    assert len(keys) == 16
    assert not [key for key in keys if _title(key) == key]


class FakePoll:
    """The agent of this process answers whenever it is asked."""

    def poll(self):
        return (Worker(os.getpid(), "mpsbar", "live", 0.0),)

    def close(self):
        pass


def test_an_agent_is_asked_after_its_time_is_over_too(monkeypatch):
    """On a busy machine that time can pass before it is asked at all."""
    monkeypatch.delenv("MPSBAR_DISABLE", raising=False)
    monkeypatch.setenv("MPSBAR_LAST_WORDS", "0")  # the check sets it
    monkeypatch.setattr(self_checks.mpsbar, "attach", lambda: True)
    monkeypatch.setattr(self_checks, "WorkerPoll", FakePoll)
    monkeypatch.setattr(self_checks, "_ANSWER_SECONDS", -1.0)
    assert self_checks._check_agent() == f"agent {__version__}"


class VirtualMac:
    """As GitHub's runners: no statistics of the GPU, no clients, and Metal's device takes a while."""

    problems = (Problem("gpu", "no accelerator"),)

    def __init__(self, is_virtual, budget=1):
        self.is_virtual, self.budget, self.waited = is_virtual, budget, 0.0

    def wait_for_slow(self, seconds):
        self.waited = seconds

    def read_machine(self):
        gpu = Gpu("Apple M1", 8, 1.0, 1, self.budget if self.waited >= 3 else None)
        return Machine(
            chip="Apple M1 (Virtual)", os="macOS 15.5", memory_total=1, memory_available=1,
            swap_used=0, pressure="normal", is_virtual=self.is_virtual,
            gpu=Gpu() if self.is_virtual else gpu,
        )  # fmt: skip

    def read_gpu_clients(self):
        return None


@pytest.mark.parametrize("is_virtual", [True, False])
def test_a_virtual_mac_is_healthy_without_a_gpu_and_says_so(monkeypatch, is_virtual):
    computer = VirtualMac(is_virtual)
    computer.problems = computer.problems if is_virtual else ()
    monkeypatch.setattr(self_checks, "this_computer", lambda: computer)
    monkeypatch.setattr(mac_checks, "this_computer", lambda: computer)
    monkeypatch.setattr(self_checks, "sys", SimpleNamespace(platform="darwin"))
    monkeypatch.setattr(mac_checks, "CHECKS", {"gpu_clients": mac_checks.CHECKS["gpu_clients"]})
    monkeypatch.setattr(self_checks, "_check_agent", lambda: "")
    monkeypatch.setattr(self_checks, "_check_process", lambda: "")
    checks = {check.key: check for check in self_checks.check_all()}
    assert checks["machine"].state == "pass", checks["machine"].detail
    assert ("virtual machine" in checks["machine"].detail) is is_virtual
    found = (checks["gpu_clients"].state, checks["gpu_clients"].detail)
    assert found[0] == ("skip" if is_virtual else "fail")
    assert found == ("skip", "virtual") or not is_virtual
