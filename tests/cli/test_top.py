"""mpsbar top where it cannot be drawn says why in one line and prints the status instead."""

import contextlib
import os
import pty
import subprocess
import sys

import pytest
from worker_kit import ROOT, wait_for

from mpsbar.cli import demo, main, top
from mpsbar.system.single_instance import read_holder
from mpsbar.ui.text import startup


def on_a_terminal(code, env):
    """What a Python writes to a terminal, and its exit code."""
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(ROOT)
        os.execve(sys.executable, [sys.executable, "-c", code], env)
    shown = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(terminal, 65536):
            shown += chunk
    os.close(terminal)
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_without_a_terminal_it_is_one_look(mpsbar):
    done = mpsbar("top", MPSBAR_REPLAY="m1-8gb")
    assert done.returncode == 0
    assert done.stderr == "mpsbar: top needs a terminal. Showing status instead:\n"
    assert "finetune.py" in done.stdout


@pytest.mark.parametrize("command", [["top"], []])
def test_without_textual_it_names_the_one_command_and_is_one_look(workers, private, command):
    code = (
        "import sys; sys.modules['textual'] = None\n"
        f"from mpsbar.cli.main import run; sys.exit(run({command}))"
    )
    shown, status = on_a_terminal(code, workers.env(MPSBAR_REPLAY="m1-8gb", TERM="xterm"))
    assert status == 0
    first = shown.splitlines()[0]
    assert first.startswith("mpsbar: the live view needs textual: ")
    assert first.endswith(" -m pip install textual. Showing status instead:")
    assert "finetune.py" in shown


def test_a_terminal_that_can_draw_nothing_gets_one_look(workers, private):
    code = "import sys; from mpsbar.cli.main import run; sys.exit(run([]))"
    shown, status = on_a_terminal(code, workers.env(MPSBAR_REPLAY="m1-8gb", TERM="dumb"))
    assert status == 0
    assert "finetune.py" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("file", "tool", "command"),
    [
        (
            "uv-receipt.toml",
            "uv",
            "uv tool install --reinstall '.[terminal]' in a checkout of mpsbar",
        ),
        ("pipx_metadata.json", "pipx", "pipx inject mpsbar textual"),
        ("other", "pip", "'/my python' -m pip install textual"),
    ],
)
def test_the_command_is_that_of_the_tool_that_installed_it(
    monkeypatch, tmp_path, file, tool, command
):
    (tmp_path / file).write_text("")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert top.how_installed() == tool
    assert f": {command}. " in startup.why_no_terminal("no_textual", tool, "/my python")


def test_the_interval_is_checked_and_help_has_examples(mpsbar):
    wrong = mpsbar("top", "--interval", "never")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "not a number of seconds between 0 and 3600: 'never'" in wrong.stderr
    shown = mpsbar("top", "--help").stdout
    assert "mpsbar top --interval 5" in shown


def test_looking_once_never_imports_textual(workers):
    code = (
        "import sys\nfrom mpsbar.cli.main import run\nrun(['status']); run([]); run(['top'])\n"
        "print([m for m in ('textual', 'rich') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=workers.env(), capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.endswith("[]\n"), done.stderr


def test_ssl_can_be_imported_where_asyncio_could_not():
    code = """
import sys
from mpsbar.cli.top import import_asyncio
class Broken:
    def find_spec(self, name, *_more):
        if name == "asyncio.base_events":
            raise ImportError("broken")
sys.meta_path.insert(0, Broken())
try:
    import_asyncio()
    raise SystemExit("it was imported")
except ImportError as problem:
    assert str(problem) == "broken", problem
import ssl
assert ssl.create_default_context().check_hostname
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_screen_has_no_ssl_in_memory_and_whoever_needs_it_can_import_it():
    code = """
import sys
from mpsbar.cli.top import import_asyncio
import_asyncio()
from mpsbar.ui.terminal.app import TerminalApp
from mpsbar.ui.terminal.hosts_app import HostsApp
assert "ssl" not in sys.modules, "imported"
import asyncio, ssl
async def main():
    assert (await asyncio.to_thread(ssl.create_default_context)).check_hostname
    return 7
assert asyncio.run(main()) == 7
import_asyncio()
assert sys.modules["ssl"] is ssl
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["top", "demo"])
def test_it_may_free_by_itself(workers, private, monkeypatch, command):
    def look(monitor, _interval):
        monitor.start()
        try:
            wait_for(lambda: read_holder("auto-free") == os.getpid(), "its turn to free")
        finally:
            monitor.close()
        return 0

    monkeypatch.setattr(demo, "plan_workers", lambda: {"torch": {}})
    monkeypatch.setattr(demo, "started", contextlib.nullcontext)
    for module in (top, demo):
        monkeypatch.setattr(module, "run_terminal", look)
        monkeypatch.setattr(module, "why_no_terminal", lambda: None)
    assert main.run([command]) == 0
