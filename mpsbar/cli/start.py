"""mpsbar without a command: starts the menu bar on a Mac with a screen, else top, else status."""

import argparse
import os
import platform
import sys
import threading
from logging import Logger

from mpsbar import __version__
from mpsbar.cli import status, top
from mpsbar.cli.output import is_terminal, print_stderr
from mpsbar.core.errors import UserError
from mpsbar.core.findings import Reason
from mpsbar.desktop.icon_visibility import draws_no_icon, has_gui_session
from mpsbar.ui.text import startup
from mpsbar.ui.text.startup import say_history, say_no_icon


def run(options: argparse.Namespace) -> int:
    why = why_no_menubar()
    if why is None:
        return run_menubar(options)
    if why not in ("no_mac", "no_screen"):  # nobody expects an icon there
        print_stderr(f"mpsbar: {say_no_icon(why)}")
    if is_terminal():
        options.every = options.interval
        return top.run(options)
    return status.run(options)


def why_no_menubar() -> str | None:
    """Returns a code for the reason, or None if the menu bar app can run."""
    if sys.platform != "darwin" or os.environ.get("MPSBAR_REPLAY"):
        return "no_mac"
    if not has_gui_session():
        return "no_screen"
    return draws_no_icon()


def run_menubar(options: argparse.Namespace) -> int:
    """Runs the app until it quits, which ends the process: on a Mac this does not return."""
    from mpsbar.system import single_instance
    from mpsbar.system.log import start_log
    from mpsbar.system.settings_file import read_settings

    claim = single_instance.claim()
    if claim is None:
        single_instance.nudge()
        print(f"mpsbar: {startup.is_running(single_instance.read_holder())}")
        return 0
    log = start_log()
    log.info("mpsbar %s, Python %s, macOS %s", __version__, sys.version, platform.mac_ver()[0])
    if not claim.is_sure:
        log.warning("whether another mpsbar runs cannot be known: %s", claim.why_unsure)
    flags = {key: getattr(options, key) for key in ("bar", "interval")}
    loaded = read_settings({k: v for k, v in flags.items() if v is not None}, repair=True)
    for complaint in loaded.complaints:
        log.warning("%s", complaint)
        print_stderr(f"mpsbar: {complaint}")
    threading.Thread(
        target=_refresh_agents, args=(log,), name="mpsbar-refresh", daemon=True
    ).start()
    try:
        from mpsbar.desktop.notifications import make_notifier
        from mpsbar.fleet.service import MetricsService
        from mpsbar.history.recorder import Recorder
        from mpsbar.monitor import Monitor
        from mpsbar.ui.menubar.app import MenuBar
    except ImportError as problem:
        raise UserError(startup.no_rumps(str(problem))) from problem
    notifier = make_notifier(log.warning, "darwin")

    def report_problem(reason: Reason) -> None:
        text = say_history(reason)
        log.warning("%s", text)
        notifier.notify("mpsbar", text, reason.code)

    monitor = Monitor(recorder=Recorder(report_problem), may_free=True)
    MenuBar(monitor, loaded, notifier, claim, MetricsService(monitor)).run()
    return 0


def _refresh_agents(log: Logger) -> None:
    """Updates the agent in environments that an older mpsbar enabled, for their next start."""
    from mpsbar.workers import enable
    from mpsbar.workers.environments import UnusablePythonError, read_enabled

    for python in read_enabled():
        environment = enable.find_enabled(python)
        if environment is None:
            log.info("enabled: %s: no agent found; mpsbar enable --list asks that Python", python)
            continue
        try:
            is_new = enable.enable(environment)
            log.info("enabled: %s: agent %s%s", python, __version__, ", updated" if is_new else "")
        except UnusablePythonError as problem:
            log.warning("enabled: %s: %s", python, problem)
