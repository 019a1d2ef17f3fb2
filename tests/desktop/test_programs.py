"""What is opened for a person: asked of macOS on the double, of a real program on Linux."""

from pathlib import Path

import appkit
import psutil
from desktop_kit import StandIn, in_thread, wait_for

from mpsbar.desktop import programs


def test_on_macos_files_and_apps_are_opened(tmp_path):
    report = tmp_path / "report 100%.html"
    report.write_text("<p>")
    with appkit.installed() as mac:
        mac.state.applications[programs.ACTIVITY_MONITOR] = "/System/Applications/Utilities/A.app"
        assert programs.open_file(report, "darwin")
        assert programs.open_application(programs.ACTIVITY_MONITOR, "darwin")
        assert mac.state.opened == [
            f"file://{report}",
            "file:///System/Applications/Utilities/A.app",
        ]


def test_from_any_thread(tmp_path):
    with appkit.installed() as mac:
        mac.state.applications[programs.INSTRUMENTS] = "/Applications/Instruments.app"
        assert not in_thread(lambda: programs.open_file(tmp_path, "darwin"))
        assert not in_thread(lambda: programs.open_application(programs.INSTRUMENTS, "darwin"))
        assert len(mac.state.opened) == 2


def test_what_is_not_there_is_not_opened(tmp_path):
    with appkit.installed() as mac:
        assert not programs.open_file(tmp_path / "none", "darwin")
        assert not programs.open_application(programs.INSTRUMENTS, "darwin")
        assert mac.state.opened == []


def test_linux_has_no_apps_by_identifier():
    assert not programs.open_application(programs.ACTIVITY_MONITOR, "linux")


def test_on_linux_xdg_open_gets_the_whole_path(tmp_path, monkeypatch):
    program = StandIn(tmp_path / "bin", "xdg-open")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)
    Path("-e $(id).html").write_text("")
    for variable in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(variable, raising=False)
    assert not programs.open_file(Path("-e $(id).html"), "linux")  # nobody is there to see it
    monkeypatch.setenv("DISPLAY", ":0")
    assert programs.open_file(Path("-e $(id).html"), "linux")
    wait_for(lambda: program.calls)
    assert program.calls == [[str(tmp_path / "-e $(id).html").encode()]]
    wait_for(lambda: not psutil.pid_exists(program.pids[0]))  # no zombie stays
    program.path.write_text("no program")
    assert not programs.open_file(Path("-e $(id).html"), "linux")
    program.path.unlink()
    assert not programs.open_file(Path("-e $(id).html"), "linux")
