"""The commands that only the app has: How to Profile, Install Command Line Tool, About, Quit.

Those with a dialog wait until the menu has closed.
"""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

import rumps

from mpsbar import __version__
from mpsbar.core.actions import (
    Action,
    Command,
)
from mpsbar.desktop import command_line_link
from mpsbar.desktop.programs import (
    ACTIVITY_MONITOR,
    INSTRUMENTS,
    open_application,
    open_notification_settings,
)
from mpsbar.language import _
from mpsbar.ui.controller import Controller
from mpsbar.ui.menubar.front_end import ask, choose_folder
from mpsbar.ui.menubar.run_loop import call_when_free
from mpsbar.ui.text.dialogs import (
    SNIPPET,
    about,
    ask_link_folder,
    ask_profiling,
    describe_folder_panel,
    explain_delivery,
    link_dialog,
    no_application,
)

_log = logging.getLogger("mpsbar")


def show_profiling(controller: Controller) -> None:
    button = ask(ask_profiling())
    if button == 0:
        controller.front_end.copy(SNIPPET)
    elif button == 1 and not open_application(INSTRUMENTS, "darwin"):
        ask(no_application("Instruments"))
    elif button == 2 and not open_application(ACTIVITY_MONITOR, "darwin"):
        ask(no_application("Activity Monitor"))


def install_command(controller: Controller) -> None:
    """Link the app's own command into a folder of the person's choice."""
    tool, home = command_line_link.find_tool(), str(Path.home())
    folders = command_line_link.suggest_folders(home)
    button = ask(ask_link_folder(folders, home))
    folder = folders[button] if button < len(folders) else None
    if button == len(folders):
        folder = choose_folder(home, *describe_folder_panel())
    if tool is None or folder is None:
        return

    def show(link: command_line_link.Link) -> None:
        # Not over a menu that was opened meanwhile: its tracking takes the alert's clicks.
        call_when_free(_show_link, controller, link)

    link = partial(command_line_link.install, tool, folder)
    controller.run(_("Install Command Line Tool"), link, show)


def _show_link(controller: Controller, link: command_line_link.Link) -> None:
    _log.info("command line tool: %s %s", link.state, link.path)
    dialog = link_dialog(link.state, link.path, link.on_path, link.by_hand, link.detail)
    if ask(dialog) == 0 and len(dialog.buttons) > 1:
        controller.front_end.copy(link.by_hand)


def show_about(_controller: Controller) -> None:
    ask(about(__version__))


def show_delivery(controller: Controller) -> None:
    if ask(explain_delivery(controller.ui_state.delivery)) == 0:
        open_notification_settings()


def _when_closed(title: str, command: Callable[[Controller], None]) -> Callable[[Controller], None]:
    def run(controller: Controller) -> None:
        try:
            command(controller)
        except Exception as error:  # noqa: BLE001 - logged and shown
            controller.fail(title, error)

    return lambda controller: call_when_free(run, controller)


def quit_app(_controller: Controller) -> None:
    rumps.quit_application()


APP_COMMANDS: dict[Action, Callable[[Controller], None]] = {
    Command.SHOW_PROFILING: _when_closed(_("How to Profile"), show_profiling),
    Command.INSTALL_COMMAND: _when_closed(_("Install Command Line Tool"), install_command),
    Command.SHOW_ABOUT: _when_closed(_("About mpsbar"), show_about),
    Command.EXPLAIN_DELIVERY: _when_closed(_("Open Notification Settings"), show_delivery),
    Command.QUIT: quit_app,
}
