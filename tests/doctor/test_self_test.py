"""mpsbar doctor --self-test: on Linux what can be, on the double of a Mac the rest."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import interpreters
import psutil
import pytest
from worker_kit import ROOT, need_module

import mpsbar
from mpsbar.core.machine import DeliveryCheck, Gpu, IconCheck, Machine, Problem
from mpsbar.desktop.notifications import write_delivery
from mpsbar.doctor.self_test import checks as self_checks
from mpsbar.doctor.self_test import mac_checks, worker_trial
from mpsbar.doctor.self_test.text import FOR_PEOPLE, SelfCheck, render_self_test
from mpsbar.doctor.self_test.worker_trial import WorkerTrial, describe
from mpsbar.system.platform import GpuClient
from mpsbar.ui.text.wording import duration


def doctor(*arguments, env):
    command = [sys.executable, "-m", "mpsbar", "doctor", "--self-test", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, timeout=120)


@pytest.mark.skipif(sys.platform == "darwin", reason="there more is checked")
def test_on_linux_it_passes_and_says_what_it_cannot_check(workers, private):
    done = doctor("--json", env=workers.env())
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)["checks"]
    states = {row["check"]: row["state"] for row in rows}
    common = ("resources", "folders", "settings", "agent", "machine", "process")
    assert {states[key] for key in common} == {"pass"}
    assert {states[key] for key in mac_checks.CHECKS} == {"skip"}
    assert {key for key, state in states.items() if state == "look"} == set(FOR_PEOPLE)
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


def test_the_words():
    checks = [
        SelfCheck("agent", "pass", "agent 0.1.0"),
        SelfCheck("settings", "fail", "ValueError: bar is 3, in /Users/ada/x\x1b[31m"),
        SelfCheck("icon", "skip", "not_yet"),
        SelfCheck("signature", "skip", "not_in_app"),
        SelfCheck("no_dock", "look"),
    ]
    assert render_self_test("0.1.0", checks, "/Users/ada").splitlines() == [
        "mpsbar 0.1.0 self-test",
        "",
        "  pass  an agent starts and answers: agent 0.1.0",
        "  FAIL  settings file: ValueError: bar is 3, in ~/x\ufffd[31m",
        "  -     the icon, when the app last checked it: not checked: the menu bar app has not run yet, or there is no screen",
        "  -     the code signature: not checked: this is not mpsbar.app",
        "",
        "To check yourself, on a Mac (packaging/MAC_CHECKLIST.md):",
        "  todo  mpsbar is not in the Dock",
        "",
        "1 passed, 1 failed, 2 not checked, 1 to check yourself",
    ]


def test_every_check_has_a_title():
    from mpsbar.doctor.self_test.text import _title

    keys = {check.key for check in self_checks.check_all() if check.state != "look"}
    assert len(keys) == 16
    assert not [key for key in keys if _title(key) == key]


class TestMac:
    @pytest.fixture
    def app(self, mac, private, monkeypatch):
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        mac.state.info = {"CFBundleShortVersionString": mpsbar.__version__, "LSUIElement": True}
        path = private / "home/Applications/mpsbar.app"
        path.mkdir(parents=True)
        return path

    def check(self, key):
        check = self_checks.try_check(key, mac_checks.CHECKS[key])
        return check.state, check.detail

    def test_the_app_knows_itself(self, mac, app):
        assert self.check("bundle") == ("pass", f"io.github.mpsbar in {app}")
        mac.state.info["LSUIElement"] = False
        assert self.check("bundle") == ("fail", "ValueError: Info.plist: LSUIElement")

    def test_bytecode_in_it_is_found(self, app, monkeypatch):
        assert self.check("sealed")[0] == "pass"
        (app / "Contents/__pycache__").mkdir(parents=True)
        assert "bytecode is in the app" in self.check("sealed")[1]
        monkeypatch.setattr(sys, "dont_write_bytecode", False)
        assert "would be written" in self.check("sealed")[1]

    @pytest.mark.parametrize(
        ("code", "state"), [("exit 0", "pass"), ("echo void >&2; exit 3", "fail")]
    )
    def test_the_signature_is_codesigns_word(self, app, tmp_path, monkeypatch, code, state):
        program = tmp_path / "codesign"
        program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n{code}\n')
        program.chmod(0o755)
        monkeypatch.setattr(
            mac_checks.app_bundle.verify_signature, "__defaults__", (bytes(program),)
        )
        seen = self.check("signature")
        assert seen[0] == state
        assert state == "pass" or "exit 3 void" in seen[1]
        assert (tmp_path / "asked").read_text() == f"--verify --deep --strict -- {app}\n"

    def test_the_icon_as_the_app_saw_it(self, private):
        from mpsbar.desktop.icon_visibility import write_icon

        assert self.check("icon") == ("skip", "not_yet")
        write_icon(IconCheck(time.time(), None, "icon fine: …"))
        assert self.check("icon") == ("pass", "icon fine: …")
        write_icon(IconCheck(time.time(), "behind_notch", "left=3"))
        assert self.check("icon") == ("fail", "RuntimeError: behind_notch: left=3")

    def test_no_screen_is_no_fault(self):
        assert self.check("screen") == ("skip", "not_yet")  # no CoreGraphics here


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


def test_alerts_as_the_app_saw_them(private):
    check = mac_checks.CHECKS["alerts"]
    assert check() is None
    write_delivery(DeliveryCheck(time.time(), "script"))
    assert "System Settings > Notifications > Script Editor" in check()
    write_delivery(DeliveryCheck(time.time(), "failed"))
    with pytest.raises(RuntimeError, match="Recent Alerts"):
        check()


TRIAL = WorkerTrial(
    "2.13.0", "mps", False, True, 1 << 30, 1 << 29, 1 << 28, 1 << 29, "done", 1.0, 0.25
)


def test_a_worker_is_tried_and_what_it_freed_is_in_the_readings(workers, private):
    """On the software MPS device: connected by `mpsbar run`'s way in, freed, ended."""
    need_module("softmps")
    env = workers.env(SOFTMPS="1")
    done = doctor("--python", sys.executable, "--share", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "a worker with torch" in line]
    assert line.startswith("  pass  a worker with torch is connected and freed: torch 2.")
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
        ({"state": "busy"}, "the Free ended with busy"),
        ({"freed": 0}, "nothing was freed"),
        ({"client_before": True}, "before it gave the GPU any work"),
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
    monkeypatch.setenv("VIRTUAL_ENV", "/venv")
    assert worker_trial.find_python() == "/venv/bin/python"
    monkeypatch.delenv("VIRTUAL_ENV")
    assert worker_trial.find_python() is None
    monkeypatch.setattr(worker_trial, "sys", SimpleNamespace(platform="darwin"))
    assert worker_trial.find_python() == "/opt/a/bin/python"
    monkeypatch.setattr(worker_trial, "find_installed", lambda home: [])
    assert worker_trial.find_python() is None
