"""mpsbar top: live in the terminal; one look where it cannot be."""

import argparse
import gc
import importlib.util
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from mpsbar.cli import status
from mpsbar.core.snapshot import Snapshot
from mpsbar.monitor import Monitor
from mpsbar.ui.text import startup

if TYPE_CHECKING:
    from mpsbar.ui.terminal.app import Terminal


def run(options: argparse.Namespace) -> int:
    if why := why_no_terminal():
        words = startup.why_no_terminal(why, how_installed(), sys.executable)
        print(f"mpsbar: {words}", file=sys.stderr)
        return status.run(options)
    from mpsbar.history.recorder import Recorder

    # What it has to say would stand in the middle of the screen; doctor tells it.
    return end(run_terminal(Monitor(recorder=Recorder(lambda _: None)), options.every))


def why_no_terminal() -> str | None:
    """A code; None: it can be drawn here."""
    if not is_terminal():
        return "no_terminal"
    return None if _has_textual() else "no_textual"


def _has_textual() -> bool:
    try:
        return importlib.util.find_spec("textual") is not None
    except ValueError:  # someone keeps it from being imported
        return False


def is_terminal() -> bool:
    """Someone who sees and types."""
    # textual draws on stderr.
    there = all(s is not None and s.isatty() for s in (sys.stdin, sys.stdout, sys.stderr))
    return there and os.environ.get("TERM", "dumb") != "dumb"


def how_installed() -> str:
    """By which tool, so that the one command that helps can be named."""
    prefix = Path(sys.prefix)
    tools = {"uv": "uv-receipt.toml", "pipx": "pipx_metadata.json"}
    return next((tool for tool, file in tools.items() if (prefix / file).exists()), "pip")


def run_terminal(monitor: Monitor, interval: float | None) -> int:
    """Until the person quits."""
    from mpsbar.system.settings_file import read_settings

    loaded = read_settings({} if interval is None else {"interval": interval})
    monitor.apply(loaded.settings)
    apps: list[Terminal] = []

    def on_tick(snapshot: Snapshot) -> None:
        for app in apps:
            app.on_tick(snapshot)

    # The first look is taken while textual, the longest part of the start, is imported.
    monitor.start(on_tick)
    try:
        app = _import_app()(monitor, loaded)
        apps.append(app)
        app.run()
    finally:
        monitor.close()
    return app.return_code or 0


def _import_app() -> "type[Terminal]":
    """Thousands of objects that stay for good: nothing in them is worth collecting."""
    gc.disable()
    try:
        from mpsbar.ui.terminal.app import Terminal
    finally:
        gc.freeze()
        gc.enable()
    return Terminal


def end(code: int) -> int:
    """A worker that still owes an answer must not keep the shell waiting for its prompt."""
    if any(thread.name.startswith("mpsbar-action") for thread in threading.enumerate()):
        sys.stdout.flush()
        os._exit(code)
    return code
