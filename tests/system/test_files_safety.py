"""mpsbar's own files where somebody else could have written them: not used, said once, not changed."""

import json
import logging
import os
import sqlite3
import stat
import subprocess
import sys

import pytest
from probe_samples import make_probe
from worker_kit import ROOT, TIMEOUT

from mpsbar.agent import user_folders
from mpsbar.core.errors import UserError
from mpsbar.core.machine import IconCheck
from mpsbar.core.snapshot import Snapshot
from mpsbar.desktop.icon_visibility import read_icon, write_icon
from mpsbar.dtypes.results import find_result, read_result, write_result
from mpsbar.history.reader import open_to_read, read_start
from mpsbar.history.recorder import FLUSH_SECONDS, Recorder
from mpsbar.history.report.build import write_report
from mpsbar.system import files, paths, single_instance
from mpsbar.system.log import start_log
from mpsbar.system.ownership import NotTrustedError
from mpsbar.system.settings_file import read_settings, write_setting
from mpsbar.workers.environments import forget_enabled, read_enabled, remember_enabled
from mpsbar.workers.run import copy_agent

EVE = 54321  # a number without an account
NOBODY = Snapshot(0.0)
is_root = os.geteuid() == 0


@pytest.fixture(autouse=True)
def folders(private, monkeypatch):
    monkeypatch.setattr(files, "_logged", set())
    for name in ("data", "config", "log"):
        (private / name).mkdir(0o755)
    return private


def give_away(path):
    os.chown(path, EVE, EVE)


def open_up(path):
    path.chmod(path.stat().st_mode | 0o002)


WAYS = [
    open_up,
    pytest.param(
        give_away,
        marks=pytest.mark.skipif(not is_root, reason="only root can give files to others"),
    ),
]


def fill():
    """One of each file, as mpsbar itself makes them."""
    remember_enabled("/v/bin/python")
    write_setting("bar", "gpu")
    write_icon(IconCheck(1.0, None, "there"))
    probe = make_probe(python=sys.executable, system=user_folders.system_version(), torch_file=None)
    write_result(probe)
    time = 0.0

    def clock():
        return time

    recorder = Recorder(lambda reason: None, clock=clock)
    time = 2 * FLUSH_SECONDS
    recorder.record(Snapshot(1e9), [], [])
    recorder.close()
    single_instance.claim().close()


def read_all():
    return {
        "enabled": read_enabled() == ["/v/bin/python"],
        "settings": read_settings().settings.bar == "gpu",
        "icon": read_icon() is not None,
        "probe": find_result(NOBODY) is not None,
        "history": read_start() is not None,
        "holder": single_instance.read_holder() is not None,
        "nudged": single_instance.nudge(),
    }


def read_contents(folder):
    """Every path in it, with the bytes of files."""
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def find_refusals(caplog):
    """Not what a thread logs that an earlier test's app has left."""
    return [each for each in caplog.messages if each.startswith("mpsbar will not use ")]


def test_what_is_ours_is_used(caplog):
    fill()
    assert all(read_all().values()), read_all()
    assert find_refusals(caplog) == []


@pytest.mark.parametrize("change", WAYS)
def test_a_data_folder_that_somebody_else_can_change_is_not_read(folders, caplog, change):
    """The folder is one reason for all its files, so it is said once, with the first of them."""
    fill()
    data = folders / "data"
    change(data)
    before = read_contents(data)
    why = "is writable by everyone; chmod go-w" if change is open_up else "belongs to another"
    for _ in range(2):
        assert read_all() == dict.fromkeys(read_all(), False) | {"settings": True}
        remember_enabled("/w/bin/python")
        (words,) = find_refusals(caplog)
        assert words.startswith(f"mpsbar will not use {paths.enabled_file()}: {data} {why}")
    readers = {paths.icon_file(): read_icon, paths.history_file(): read_start}
    for file, read in readers.items():  # whichever of them is the first
        caplog.clear()
        files._logged.clear()
        assert [read(), read()] == [None, None]
        (words,) = find_refusals(caplog)
        assert words.startswith(f"mpsbar will not use {file}: {data} {why}")
    assert read_contents(data) == before


@pytest.mark.parametrize("change", WAYS)
def test_a_file_that_somebody_else_can_change_is_not_read(folders, change):
    fill()
    for file in (*(folders / "data").rglob("*"), paths.settings_file()):
        if file.is_file():
            change(file)
    assert read_all() == dict.fromkeys(read_all(), False)


@pytest.mark.parametrize("change", WAYS)
def test_the_settings_of_another_user_are_a_complaint(folders, change):
    fill()
    change(folders / "config")
    (words,) = read_settings().complaints
    assert f"couldn't read {paths.settings_file()} ({folders / 'config'} " in words
    assert words.endswith("; using the defaults")
    with pytest.raises(UserError, match=r"couldn't change .*settings\.toml: /"):
        write_setting("bar", "dot")


@pytest.mark.parametrize("change", WAYS)
def test_nothing_is_written_where_somebody_else_can_change_it(folders, caplog, change):
    change(folders / "data")
    remember_enabled("/v/bin/python")
    forget_enabled("/v/bin/python")
    with pytest.raises(NotTrustedError):
        write_icon(IconCheck(1.0, None, "there"))
    with pytest.raises(NotTrustedError):
        write_report(NOBODY, None)
    with pytest.raises(OSError):
        write_result(make_probe())
    with pytest.raises(NotTrustedError):
        copy_agent(folders / "data")
    claim = single_instance.claim()
    assert not claim.is_sure
    assert str(folders / "data") in claim.why_unsure
    said = []
    recorder = Recorder(said.append, clock=iter(range(0, 10**6, 100)).__next__)
    recorder.record(Snapshot(1e9), [], [])
    with pytest.raises(NotTrustedError):
        recorder.close()
    assert [(reason.code, str(folders / "data") in reason.values["error"]) for reason in said] == [
        ("history_not_written", True)
    ]
    assert [path.name for path in (folders / "data").iterdir() if path.name != "probes"] == []
    assert any("enabled.json" in record.getMessage() for record in caplog.records)


def test_forgetting_leaves_a_file_that_is_not_used(folders):
    fill()
    open_up(paths.enabled_file())
    forget_enabled("/v/bin/python")
    assert paths.enabled_file().exists()


@pytest.mark.parametrize("change", WAYS)
def test_no_log_is_kept_where_somebody_else_can_change_it(folders, capsys, change):
    change(folders / "log")
    start_log().info("hello")
    said = capsys.readouterr().err
    assert f"couldn't open the log {paths.log_file()}: {folders / 'log'} " in said
    assert "hello" in said
    assert list((folders / "log").iterdir()) == []


@pytest.mark.parametrize("change", WAYS)
def test_a_log_that_somebody_else_can_change_is_not_written(folders, capsys, change):
    paths.log_file().touch(0o600)
    change(paths.log_file())
    start_log().info("hello")
    assert "couldn't open the log " in capsys.readouterr().err
    assert paths.log_file().read_bytes() == b""


@pytest.fixture(autouse=True)
def log_ended():
    yield
    log = logging.getLogger("mpsbar")
    for handler in log.handlers[:]:
        log.removeHandler(handler)
        handler.close()
    log.propagate = True


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o700, 0o711])
def test_a_folder_that_was_there_keeps_its_mode(folders, mode):
    for name in ("data", "config", "log"):
        (folders / name).chmod(mode)
    fill()
    start_log().info("hello")
    copy_agent(folders / "data")
    assert all(read_all().values())
    modes = {stat.S_IMODE((folders / name).stat().st_mode) for name in ("data", "config", "log")}
    assert modes == {mode}


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_a_folder_that_is_refused_keeps_its_mode(folders, mode):
    for name in ("data", "config", "log"):
        os.chown(folders / name, -1, EVE if is_root else -1)
        (folders / name).chmod(mode)
    remember_enabled("/v/bin/python")
    start_log().info("hello")
    single_instance.claim().close()
    read_all()
    modes = {stat.S_IMODE((folders / name).stat().st_mode) for name in ("data", "config", "log")}
    assert modes == {mode}


def test_a_result_that_a_person_names_may_be_anybodys(folders):
    file = folders / "of a colleague.json"
    fill()
    stored = next((folders / "data" / "probes").glob("*.json"))
    file.write_bytes(stored.read_bytes())
    file.chmod(0o666)
    assert read_result(file).cells


def test_a_history_of_another_user_is_never_opened(folders, monkeypatch):
    fill()
    open_up(paths.history_file())
    monkeypatch.setattr(sqlite3, "connect", lambda *_, **__: pytest.fail("it was opened"))
    with pytest.raises(PermissionError):
        open_to_read(paths.history_file())
    assert read_start() is None


@pytest.mark.skipif(not is_root, reason="only root can give files to others")
def test_a_command_says_it_in_one_line(folders, tmp_path):
    """As root with the data folder of another user, which names a program of theirs."""
    program, mark = tmp_path / "python", tmp_path / "it ran"
    program.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
    program.chmod(0o755)
    file = folders / "data" / "enabled.json"
    file.write_text(json.dumps({"pythons": [str(program)]}))
    os.chown(file, EVE, EVE)
    done = subprocess.run(
        [sys.executable, "-m", "mpsbar", "enable", "--list"],
        env=os.environ, capture_output=True, text=True, cwd=ROOT, timeout=TIMEOUT,
    )  # fmt: skip
    assert done.stdout.startswith("No environment is enabled.")
    assert done.stderr == (
        f"mpsbar will not use {file}: {file} belongs to another user ({EVE}); "
        f"run mpsbar as {EVE}, or with sudo -H\n"
    )
    assert not mark.exists()
