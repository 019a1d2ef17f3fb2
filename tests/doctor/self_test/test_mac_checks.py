"""What only a Mac has, on the double of one: the app, its signature, the icon, alerts."""

import sys
import time

import pytest

import mpsbar
from mpsbar.core.machine import DeliveryCheck, IconCheck
from mpsbar.desktop.notifications import write_delivery
from mpsbar.doctor.self_test import checks as self_checks
from mpsbar.doctor.self_test import mac_checks


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

    @pytest.mark.starts_processes
    @pytest.mark.parametrize(
        ("code", "state"), [("exit 0", "pass"), ("echo void >&2; exit 3", "fail")]
    )
    def test_the_signature_is_codesigns_word(self, app, tmp_path, monkeypatch, code, state):
        program = tmp_path / "codesign"
        program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n{code}\n')
        program.chmod(0o755)
        monkeypatch.setattr(mac_checks.app_bundle, "CODESIGN", bytes(program))
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


def test_alerts_as_the_app_saw_them(private):
    check = mac_checks.CHECKS["alerts"]
    assert check() is None
    write_delivery(DeliveryCheck(time.time(), "script"))
    assert "System Settings > Notifications > Script Editor" in check()
    write_delivery(DeliveryCheck(time.time(), "failed"))
    with pytest.raises(RuntimeError, match="Recent Alerts"):
        check()
