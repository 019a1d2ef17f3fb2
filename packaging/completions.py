"""Completions for bash, zsh and fish, by shtab, from the parser."""

import argparse

import command_line
import shtab

# The file in packaging/shell, by shell.
FILES = {"bash": "mpsbar.bash", "zsh": "_mpsbar", "fish": "mpsbar.fish"}
_TAKES_FILE = ("FILE", "PATH", "CMD …", "FILE.py:FUNCTION")


def build_completion(shell: str) -> str:
    parser, parsers = command_line.read_parsers()
    summaries = {command.name: command.summary for command in command_line.read_commands()}
    for name, command in parsers.items():
        command.description = summaries[name]  # one line, beside the command
        for action in command._actions:
            if action.metavar in _TAKES_FILE:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    _hide(parsers["run"])
    return str(shtab.complete(parser, shell))


def _hide(parser: argparse.ArgumentParser) -> None:
    """Options without help are not for people."""
    for action in [a for a in parser._actions if a.help == argparse.SUPPRESS]:
        parser._remove_action(action)
