"""The doctor's report says what mpsbar knows of itself, to commands and in the app alike."""

import os
import time

import pytest
from samples import make_snapshot
from system.scripted import Scripted
from worker_kit import wait_for

from mpsbar.core.actions import InspectPythons
from mpsbar.core.machine import DeliveryCheck, IconCheck, Problem
from mpsbar.desktop.icon_visibility import write_icon
from mpsbar.desktop.notifications import write_delivery
from mpsbar.doctor_reader import read_doctor_report
from mpsbar.monitor import Monitor
from mpsbar.system.own_use_file import write_own_use
from mpsbar.ui.controller import Controller
from mpsbar.ui.rows import UiState
from mpsbar.ui.text.alerts import say_delivery


@pytest.fixture
def no_pythons(monkeypatch, tmp_path):
    """mpsbar's own files are empty, and there is no Python to inspect."""
    for name in ("DATA", "RUN"):
        (tmp_path / name.lower()).mkdir(mode=0o700)
        monkeypatch.setenv(f"MPSBAR_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setattr("mpsbar.doctor_reader.find_pythons", lambda *_: [])


class CopyingFrontEnd:
    """Runs what is for the main thread at once, and keeps what was copied."""

    def __init__(self):
        self.copied = []

    def copy(self, text):
        self.copied.append(text)

    def call_on_main(self, function):
        function()

    def __getattr__(self, name):
        return lambda *_: None


def test_what_the_app_copies_has_the_lines_of_mpsbar_doctor(no_pythons, monkeypatch):
    write_delivery(DeliveryCheck(time.time(), "off"))
    write_icon(IconCheck(time.time(), "behind_notch", "details"))
    write_own_use("mpsbar uses too much")
    monkeypatch.setenv("MPSBAR_EXPORT", "127.0.0.1:1")  # nobody is there
    monitor = Monitor(Scripted())
    front_end = CopyingFrontEnd()
    try:
        monitor.tick()
        Controller(monitor, front_end, UiState()).perform(InspectPythons())
        (text,) = wait_for(lambda: front_end.copied, "the block")
    finally:
        monitor.close()
    lines = text.splitlines()
    assert say_delivery("off") in lines
    assert "The menu bar icon is behind the notch" in text
    assert f"mpsbar uses too much (process {os.getpid()})" in lines
    assert "No metrics are served at 127.0.0.1:1, the address in the export setting: " in text


def test_own_use_is_said_once(no_pythons):
    write_own_use("mpsbar uses too much")
    known = Problem("own use", "mpsbar uses too much")
    assert read_doctor_report(make_snapshot(problems=(known,))).problems == (known,)


def test_why_this_python_draws_no_icon_is_asked_on_a_mac_only(no_pythons, monkeypatch):
    monkeypatch.setattr("mpsbar.doctor_reader.draws_no_icon", lambda: "framework_python")
    for platform, code in (("darwin", "framework_python"), ("linux", None)):
        monkeypatch.setattr("sys.platform", platform)
        assert read_doctor_report(make_snapshot()).no_icon == code
