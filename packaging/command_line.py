"""Reads the parser of the command line, for the man page, the completions and docs/reference."""

import argparse
import os
from dataclasses import dataclass
from importlib import import_module

# Before anything of mpsbar is imported: the usage fits a page, and the words are English.
os.environ.update({"COLUMNS": "80", "MPSBAR_LANG": "en"})

from mpsbar.cli.main import GROUPS, build_parser

# What people may set; the others are for tests. mpsbar.core.settings has one for each setting too.
VARIABLES = {
    "MPSBAR_LANG": "en or ko: the language; unset, that of the system.",
    "MPSBAR_DEBUG": "1: an internal error shows where it happened, and the log has more.",
    "MPSBAR_DISABLE": "1: attach() and an enabled environment do nothing in this process.",
    "MPSBAR_LAST_WORDS": "0: this process leaves no record of how it ended.",
    "MPSBAR_RUN_DIR": "The folder of the sockets. It must be yours, and writable by nobody else.",
    "MPSBAR_REPLAY": "m1-8gb or m1max-64gb: show a recorded Mac instead of this computer.",
    "NO_COLOR": "Anything: no colors.",
}


@dataclass(frozen=True)
class Argument:
    names: tuple[str, ...]  # as they are typed: ("-n N", "--number N")
    help: str


@dataclass(frozen=True)
class Command:
    name: str
    group: str
    summary: str
    usage: str  # with the line breaks of argparse
    description: str
    arguments: tuple[Argument, ...]
    examples: tuple[str, ...]


def read_parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The whole parser, and that of each command."""
    parser = build_parser((), with_all_commands=True)
    actions = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return parser, dict(actions[0].choices)


def read_commands() -> list[Command]:
    _, parsers = read_parsers()
    return [
        Command(
            name,
            group,
            summary,
            parsers[name]
            .format_usage()
            .removeprefix("usage: ")
            .replace("\n" + " " * 7, "\n")
            .rstrip(),
            parsers[name].description or "",
            tuple(_read_argument(parsers[name], each) for each in _list_shown(parsers[name])),
            tuple(import_module(f"mpsbar.cli.{name}").EXAMPLES),
        )
        for group, commands in GROUPS.items()
        for name, summary in commands.items()
    ]


def read_main_options() -> tuple[Argument, ...]:
    parser, _ = read_parsers()
    shown = [action for action in _list_shown(parser) if action.option_strings]
    return tuple(_read_argument(parser, action) for action in shown)


def _list_shown(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    hidden, not_listed = (argparse.SUPPRESS, None), ("help", "command")
    return [a for a in parser._actions if a.help not in hidden and a.dest not in not_listed]


def _read_argument(parser: argparse.ArgumentParser, action: argparse.Action) -> Argument:
    text = parser._get_formatter()._expand_help(action)
    if not action.option_strings:
        return Argument((str(action.metavar or action.dest),), text)
    choices = "|".join(map(str, action.choices or ()))
    value = "" if action.nargs == 0 else f" {action.metavar or choices or action.dest.upper()}"
    if action.nargs == "?":
        value = f" [{value.strip()}]"
    return Argument(tuple(name + value for name in action.option_strings), text)
