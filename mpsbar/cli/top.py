"""mpsbar top: runs the terminal UI; where that is not possible, it prints what status prints."""

import argparse
import gc
import importlib.util
import logging
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from mpsbar.agent.frameworks import join_labels
from mpsbar.cli import on_hosts, status
from mpsbar.cli.arguments import parse_seconds
from mpsbar.cli.output import is_terminal, print_stderr
from mpsbar.language import _

if TYPE_CHECKING:
    from mpsbar.core.snapshot import Snapshot
    from mpsbar.monitor import Monitor
    from mpsbar.ui.terminal.app import TerminalApp


DESCRIPTION = _(
    "Shows this computer and its {frameworks} processes, live in the terminal: what each "
    "holds, its memory over the last minutes, and keys to free, inspect and stop. ? lists "
    "the keys. Without textual, or without a terminal, it prints once, as mpsbar status does."
).format(frameworks=join_labels(_("and")))
EXAMPLES = (
    "mpsbar top",
    "mpsbar top --interval 5",
    "ssh -t mac mpsbar top",
    "mpsbar top --host mac1 --host mac2",
    "NO_COLOR=1 mpsbar top",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--interval",
        dest="every",  # `interval` is the menu bar's, whose parser is read first
        metavar="SECONDS",
        type=parse_seconds,
        help=_("time between two readings (default: 2, or as set; at least 5 on battery)"),
    )
    on_hosts.add_host_arguments(parser)


def run(options: argparse.Namespace) -> int:
    if hosts := on_hosts.find_hosts(options):
        return on_hosts.show_top(hosts, options)
    if why := why_no_terminal():
        from mpsbar.ui.text import startup

        words = startup.why_no_terminal(why, how_installed(), sys.executable)
        print_stderr(f"mpsbar: {words}")
        return status.run(options)
    from mpsbar.history.recorder import Recorder
    from mpsbar.monitor import Monitor

    # Its complaints would be printed over the screen; mpsbar doctor shows them.
    monitor = Monitor(recorder=Recorder(lambda _: None), may_free=True)
    return end(run_terminal(monitor, options.every))


def why_no_terminal() -> str | None:
    """Returns a code for the reason, or None if the terminal UI can be shown."""
    if not is_terminal():
        return "no_terminal"
    return None if _has_textual() else "no_textual"


def _has_textual() -> bool:
    try:
        return importlib.util.find_spec("textual") is not None
    except ValueError:  # sys.modules has None for it, as in a test
        return False


def how_installed() -> str:
    """Returns the tool that installed mpsbar, so that its command to add textual can be shown."""
    prefix = Path(sys.prefix)
    tools = {"uv": "uv-receipt.toml", "pipx": "pipx_metadata.json"}
    return next((tool for tool, file in tools.items() if (prefix / file).exists()), "pip")


def run_terminal(monitor: "Monitor", interval: float | None) -> int:
    """Runs the terminal UI until the person quits."""
    from mpsbar.system.settings_file import read_settings

    # Without a handler warnings would be printed over the screen; mpsbar doctor shows what failed.
    logging.getLogger("mpsbar").addHandler(logging.NullHandler())
    loaded = read_settings({} if interval is None else {"interval": interval})
    monitor.apply(loaded.settings)
    apps: list[TerminalApp] = []

    def on_tick(snapshot: "Snapshot") -> None:
        for app in apps:
            app.on_tick(snapshot)

    import_asyncio()
    # The first reading is taken while textual is imported, which takes longest.
    monitor.start(on_tick)
    try:
        app = _import_app()(monitor, loaded)
        apps.append(app)
        app.run()
    finally:
        monitor.close()
    return app.return_code or 0


def import_asyncio() -> None:
    """Imports asyncio as on a Python without ssl, which asyncio supports.

    The screen makes no connection, and OpenSSL takes 4 MB and 30 ms. No other thread may import
    anything meanwhile.
    """
    if "asyncio" in sys.modules or "ssl" in sys.modules:
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]  # makes its import fail
    try:
        importlib.import_module("asyncio")
    finally:
        del sys.modules["ssl"]  # other code may need it later


def _import_app() -> "type[TerminalApp]":
    """Imports the app without garbage collection: its thousands of objects stay for good."""
    gc.disable()
    try:
        from mpsbar.ui.terminal.app import TerminalApp
    finally:
        gc.freeze()
        gc.enable()
    return TerminalApp


def end(code: int) -> int:
    """Exits without waiting for workers that have not answered: the prompt appears at once."""
    if any(thread.name.startswith("mpsbar-action") for thread in threading.enumerate()):
        sys.stdout.flush()
        os._exit(code)
    return code
