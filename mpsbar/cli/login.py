"""mpsbar login: turns opening at login on or off, and shows whether it is on."""

import argparse
import sys
from typing import TYPE_CHECKING

from mpsbar.cli.output import print_stderr
from mpsbar.language import _

if TYPE_CHECKING:
    from mpsbar.desktop.login import LoginStatus

DESCRIPTION = _(
    "Opens mpsbar at login: with a login item (app), a LaunchAgent (tool install) or an autostart "
    "entry (Linux). With --export, starts mpsbar export instead, with a LaunchAgent or a systemd "
    "user unit. Exit code 0: done, or status is on; 1: not done, or status is off; 2: wrong "
    "arguments."
)
EXAMPLES = (
    "mpsbar login on",
    "mpsbar login status && echo yes",
    "mpsbar login on --export",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="on|off|status",
        choices=("on", "off", "status"),
        help=_("turn it on or off, or show whether it is on"),
    )
    parser.add_argument(
        "--export", action="store_true", help=_("serve metrics to Prometheus, starting at login")
    )


def run(options: argparse.Namespace) -> int:
    if options.export:
        return _run_export(options.what)
    from mpsbar.desktop import login
    from mpsbar.desktop.icon_visibility import draws_no_icon
    from mpsbar.ui.text.startup import say_no_icon

    if options.what == "status":
        status = login.read_login()
        print(_words(status))
        return 0 if status.state == "on" else 1
    status = login.turn_on() if options.what == "on" else login.turn_off()
    done = status.state == options.what
    if status.state == "needs_approval" and options.what == "on":
        login.open_login_settings()
    print(_words(status), file=sys.stdout if done else sys.stderr)
    if options.what == "on" and sys.platform == "darwin" and (why := draws_no_icon()):
        print_stderr(f"mpsbar: {say_no_icon(why)}")
    return 0 if done else 1


def _words(status: "LoginStatus") -> str:
    from mpsbar.ui.text.login import say_login

    return say_login(status.state, status.where, status.why, status.detail)


def _run_export(what: str) -> int:
    from mpsbar.desktop import login_export
    from mpsbar.ui.text.login import say_login_export

    change = {"on": login_export.turn_on, "off": login_export.turn_off, "status": login_export.read}
    status = change[what]()
    wanted = "on" if what == "status" else what
    done = status.state == wanted
    words = say_login_export(status.state, status.where, status.why, status.detail)
    print(words, file=sys.stdout if done or what == "status" else sys.stderr)
    return 0 if done else 1
