"""Parses the command line and runs a command; no traceback reaches the user."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from mpsbar import __version__
from mpsbar.agent.frameworks import join_labels
from mpsbar.cli.arguments import HelpFormatter, Parser, parse_seconds
from mpsbar.cli.output import INTERRUPTED, print_stderr, use_plain_characters
from mpsbar.core.errors import UserError, reason_of
from mpsbar.language import _, english

BARS = ("memory", "gpu", "progress", "dot", "icon")  # as in core/settings, which is slow to import

_FRAMEWORKS = join_labels(_("and"))
# Each command is a module of this folder with DESCRIPTION, EXAMPLES, add_arguments() and run().
# Only the module of the called command is imported, because it imports its feature.
# The groups are what people want to do; the help must fit a screen of 24 lines.
GROUPS = {
    # Translators: a heading in `mpsbar --help`, as Free, Connect, Check and More; at most 8 cells.
    _("Monitor"): {
        "status": _("this computer and its {frameworks} processes").format(frameworks=_FRAMEWORKS),
        "top": _("the same live: select a process, free its cache"),
        "why": _("how runs ended, and what to do about it"),
        "report": _("everything on one HTML page"),
    },
    _("Free"): {
        "free": _("free the caches of connected processes"),
        "limit": _("limit the memory of a connected process"),
    },
    _("Connect"): {
        "run": _("run a command and connect its {frameworks} processes").format(
            frameworks=_FRAMEWORKS
        ),
        "enable": _("connect every process of an environment, or every kernel"),
        "disable": _("undo mpsbar enable"),
    },
    _("Check"): {
        "probe": _("measure which dtypes work here, in seconds"),
        "compare": _("compare your own model on the device with the CPU"),
        "doctor": _("check whether torch works here, and if not, why"),
    },
    _("More"): {
        "export": _("serve metrics to Prometheus"),
        "demo": _("try mpsbar with small real workers"),
        "login": _("choose whether mpsbar opens at login"),
        "config": _("show, edit or validate the settings"),
    },
}
COMMANDS = {name: summary for commands in GROUPS.values() for name, summary in commands.items()}


def run(arguments: Sequence[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        use_plain_characters(stream)
    try:
        code = _run_command(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our pipe has closed it, so nothing more can be printed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except UserError as complaint:
        print_stderr(f"mpsbar: {complaint}")
        return 1
    except OSError as problem:
        if is_debugging():
            _print_traceback()
        named = f"{problem.filename}: " if problem.filename else ""
        print_stderr(f"mpsbar: {named}{reason_of(problem)}")
        return 1
    except Exception as error:  # noqa: BLE001 - no traceback reaches the user
        if is_debugging():
            _print_traceback()
        else:
            text = _("mpsbar: internal error: {problem} (MPSBAR_DEBUG=1 shows where)")
            print_stderr(text.format(problem=f"{type(error).__name__}: {error}"))
        return 1
    return code


def _print_traceback() -> None:
    import traceback  # imported late: it costs every command 2 ms

    traceback.print_exc()


def is_debugging() -> bool:
    return os.environ.get("MPSBAR_DEBUG", "") not in ("", "0")


def _run_command(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    parser = build_parser(arguments)
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        parser.error(_say_unknown(arguments[0]))
    options = parser.parse_args(arguments)
    if options.command and (options.bar or options.interval):
        parser.error(
            _("--bar and --interval are for the menu bar, not for {command}").format(
                command=options.command
            )
        )
    module = importlib.import_module(f"mpsbar.cli.{options.command or 'start'}")
    # What programs read is English in every language.
    with english() if options.json or getattr(options, "csv", False) else nullcontext():
        return int(module.run(options))


def _say_unknown(command: str) -> str:
    import difflib

    close = difflib.get_close_matches(command, COMMANDS, n=1)
    if close:
        text = _("unknown command {command!r}; did you mean {close!r}?")
        return text.format(command=command, close=close[0])
    return _("unknown command {command!r}").format(command=command)


class _MainParser(Parser):
    """Prints the list of commands, in groups, as its help."""

    def format_help(self) -> str:
        lines = [
            _("usage: mpsbar [COMMAND …]     mpsbar COMMAND --help for details and examples"),
            "",
            _("Who holds my GPU memory, and can I get it back? For {frameworks}.").format(
                frameworks=_FRAMEWORKS
            ),
            _("Without a command: the menu bar on a Mac; elsewhere top, or status in a pipe."),
            "",
        ]
        for group, commands in GROUPS.items():
            for number, (name, summary) in enumerate(commands.items()):
                lines.append(f"{_pad('' if number else group)}{name:9}{summary}")
        lines += [
            _("-V, --version; for the menu bar: --interval SECONDS,"),
            f"--bar {{{','.join(BARS)}}}",
        ]
        return "\n".join(lines) + "\n"


def _pad(group: str) -> str:
    """Pads to 9 cells. ASCII needs no import for that: each letter takes one cell."""
    if group.isascii():
        return f"{group:9}"
    from mpsbar.ui.text.cells import fit

    return fit(group, 9)


def build_parser(
    arguments: Sequence[str], with_all_commands: bool = False
) -> argparse.ArgumentParser:
    """Builds the parser with all commands, and the arguments of the called one or of all."""
    parser = _MainParser(prog="mpsbar", formatter_class=HelpFormatter)
    parser.add_argument("-V", "--version", action="version", version=f"mpsbar {__version__}")
    parser.add_argument(
        "--bar",
        choices=BARS,
        help=_("what the menu bar shows until mpsbar quits"),
    )
    parser.add_argument(
        "--interval",
        metavar="SECONDS",
        type=parse_seconds,
        help=_("time between two readings until mpsbar quits"),
    )
    parser.set_defaults(
        json=False,
        watch=None,
        every=None,
        format=None,
        host=None,
        hosts=False,
        ssh="",
        wide=False,
        pid=None,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    called = next((argument for argument in arguments if argument in COMMANDS), None)
    for name, summary in COMMANDS.items():
        command_parser = commands.add_parser(name, help=summary, formatter_class=HelpFormatter)
        if name == called or with_all_commands:
            module = importlib.import_module(f"mpsbar.cli.{name}")
            command_parser.description = module.DESCRIPTION
            title = _("examples:") if len(module.EXAMPLES) > 1 else _("example:")
            command_parser.epilog = "\n  ".join([title, *module.EXAMPLES])
            module.add_arguments(command_parser)
    return parser
