"""mpsbar without a command: the menu bar, else top or status; a second instance does not start."""

import argparse
import errno
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from mpsbar import __version__
from mpsbar.cli import start
from mpsbar.cli.main import build_parser
from mpsbar.system.settings_file import read_settings
from mpsbar.system.single_instance import read_holder

# On a Mac the ticking thread ends with the process; here it may find AppKit gone.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
OPTIONS = build_parser([]).parse_args([])


def test_off_the_mac_it_is_one_look(mpsbar):
    done = mpsbar(MPSBAR_REPLAY="m1-8gb")
    assert (done.returncode, done.stderr) == (0, "")
    assert "finetune.py" in done.stdout


def test_flags_of_the_menu_bar_are_for_the_menu_bar(mpsbar):
    done = mpsbar("--bar", "gpu", "status")
    assert done.returncode == 2
    assert done.stderr == (
        "mpsbar: --bar and --interval are for the menu bar, not for status (see mpsbar --help)\n"
    )
    assert mpsbar("--bar", "blue").returncode == 2


@pytest.mark.parametrize(
    ("platform", "screen", "framework", "why"),
    [
        ("linux", True, None, "no_mac"),
        ("darwin", False, None, "no_screen"),
        ("darwin", None, None, "no_screen"),
        ("darwin", True, "framework_python", "framework_python"),
        ("darwin", True, None, None),
    ],
)
def test_why_there_is_no_menu_bar(monkeypatch, platform, screen, framework, why):
    monkeypatch.setattr(start, "has_gui_session", lambda: screen)
    monkeypatch.setattr(start, "draws_no_icon", lambda: framework)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", platform)
        found = start.why_no_menubar()
    assert found == why


def test_a_framework_python_gets_one_line_and_the_status(monkeypatch, capsys, workers):
    monkeypatch.setattr(start, "why_no_menubar", lambda: "framework_python")
    monkeypatch.setenv("MPSBAR_REPLAY", "m1-8gb")
    assert start.run(OPTIONS) == 0
    messages = capsys.readouterr()
    assert messages.err.count("\n") == 1
    assert (
        "uv tool install --managed-python --python 3.13 '.[terminal]' in a checkout of mpsbar"
        in messages.err
    )
    assert "finetune.py" in messages.out


def test_a_second_start_nudges_the_first_and_ends(private, capsys):
    from mpsbar.system.single_instance import claim

    first = claim()
    assert start.run_menubar(OPTIONS) == 0
    assert "already running (PID" in capsys.readouterr().out
    assert first.nudged()
    first.close()


def test_without_rumps_it_is_one_sentence(private, monkeypatch, workers):
    from mpsbar.core.errors import UserError

    monkeypatch.setitem(sys.modules, "AppKit", None)
    for name in [name for name in sys.modules if name.startswith("mpsbar.ui.menubar")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(UserError, match="the menu bar requires rumps and PyObjC"):
        start.run_menubar(OPTIONS)


def test_the_app_starts_with_the_flags_over_the_file(mac, private, workers, calm_computer):
    (private / "config").mkdir()
    (private / "config/settings.toml").write_text('bar = "icon"\ninterval = 30\n')

    def person():
        mac.wait_for(lambda: mac.bar() == "●")
        mac.wait_for(lambda: read_holder("auto-free") == os.getpid())  # it may free by itself
        mac.click("Quit mpsbar")

    options = argparse.Namespace(bar="dot", interval=None)
    mac.run(lambda: start.run_menubar(options), person)
    assert (private / "log/mpsbar.log").read_text().count(" mpsbar 0") == 1
    assert read_settings().settings.bar == "icon"  # what a flag says is for this time


def test_a_broken_settings_file_is_kept_aside_and_named(
    mac, private, workers, calm_computer, capsys
):
    (private / "config").mkdir()
    (private / "config/settings.toml").write_text("bar = [\n")

    messages = []

    def person():
        mac.wait_for(lambda: mac.state.delivered)
        notice = mac.state.delivered[0].content()
        messages.extend([notice.title(), notice.body()])
        mac.click("Quit mpsbar")

    mac.run(lambda: start.run_menubar(OPTIONS), person)
    (moved,) = (private / "config").glob("settings.toml.broken-*")
    assert moved.read_text() == "bar = [\n"
    assert str(moved) in capsys.readouterr().err
    assert messages[0] == "Some settings can't be used"
    assert str(moved) in messages[1]


def test_the_app_records_and_says_once_that_the_history_was_damaged(
    mac, private, workers, calm_computer, monkeypatch
):
    from mpsbar.history import recorder
    from mpsbar.history.reader import read_start
    from mpsbar.system import paths

    monkeypatch.setattr(recorder, "FLUSH_SECONDS", 0.1)
    file = paths.history_file()
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"no database " * 1000)
    messages = []

    def person():
        mac.wait_for(lambda: mac.state.delivered)
        messages.extend(notice.content().body() for notice in mac.state.delivered)
        mac.wait_for(lambda: read_start(file) is not None)
        mac.click("Quit mpsbar")

    mac.run(lambda: start.run_menubar(argparse.Namespace(bar=None, interval=0.5)), person)
    (moved,) = file.parent.glob("history.damaged-*.sqlite")
    sentence = f"the history was damaged; it was moved to {moved}, and a new one was started"
    assert messages == [sentence]
    assert (private / "log/mpsbar.log").read_text().count(sentence) == 1


def test_where_locks_do_not_work_it_starts_and_the_log_says_so(mac, private, workers, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    mac.run(lambda: start.run_menubar(OPTIONS), lambda: mac.click("Quit mpsbar"))
    log = (private / "log/mpsbar.log").read_text()
    assert "whether another mpsbar runs cannot be known: No locks available" in log


def test_at_the_start_enabled_environments_are_updated_by_their_files(
    tmp_path, private, monkeypatch
):
    """None is run: one in Documents would make macOS ask whether mpsbar may."""
    from mpsbar.workers import enable, environments

    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = str(venv / "bin/python")
    assert enable.connect(python).state == "enabled"
    site = environments.read_environment(python).site
    (info,) = site.glob("mpsbar_agent-*.dist-info")
    info.rename(info.with_name("mpsbar_agent-0.0.9.dist-info"))
    (site / "mpsbar_agent/server.py").write_text("# older\n")

    def refuse(*_, **__):
        raise AssertionError("a Python was run")

    for module in (enable, environments):
        for name in ("start_python", "start_child"):
            monkeypatch.setattr(module, name, refuse, raising=False)
    said = []
    log = SimpleNamespace(
        info=lambda text, *values: said.append(text % values), warning=said.append
    )
    start._refresh_agents(log)
    start._refresh_agents(log)
    assert said == [
        f"enabled: {python}: agent {__version__}, updated",
        f"enabled: {python}: agent {__version__}",
    ]
    assert (site / "mpsbar_agent/server.py").read_text().startswith('"""The agent')
    shutil.rmtree(venv)
    start._refresh_agents(log)
    assert "no agent found" in said[-1]
