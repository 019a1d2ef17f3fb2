"""argparse's own words: every one that a person can see is in our catalogues, for each Python there is."""

import argparse
import ast
import inspect
import subprocess
from pathlib import Path

import pytest
from interpreters import VERSIONS, need

from mpsbar.cli import arguments

# For whoever writes a parser, or for what we do not use: deprecated arguments, FileType, defaults in the help.
NEVER_SHOWN = {
    " (default: %(default)s)", "%(prog)s: error: %(message)s\n", "%(prog)s: warning: %(message)s\n", "%r is not callable",
    "'required' is an invalid argument for positionals", ".__call__() not defined", 'argument "-" with mode %r',
    "argument '%(argument_name)s' is deprecated", "can't open '%(filename)s': %(error)s",
    "cannot have multiple subparser arguments", "cannot merge actions - two groups are named %r",
    "command '%(parser_name)s' is deprecated", "conflicting option string: %s", "conflicting subparser alias: %s",
    "conflicting subparser: %s", "dest= is required for options like %r", "invalid conflict_resolution value: %r",
    "invalid option string %(option)r: must start with a character %(prefix_chars)r",
    "mutually exclusive arguments must be optional", "option '%(option)s' is deprecated", "subcommands",
    "unexpected option string: %s", "unknown parser %(parser_name)r (choices: %(choices)s)",
}  # fmt: skip


def read_words(source):
    return {
        node.args[0].value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in ("_", "ngettext")
        and isinstance(node.args[0], ast.Constant)
    }


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != "3.9"])
def test_every_word_of_argparse_is_ours_or_never_shown(version):
    code = "import argparse; print(argparse.__file__)"
    file = subprocess.run(
        [need(version), "-c", code], capture_output=True, text=True, check=True, timeout=100
    ).stdout.strip()
    words = read_words(Path(file).read_text(encoding="utf-8"))
    assert "usage: " in words
    ours = read_words(inspect.getsource(arguments))
    assert words - NEVER_SHOWN - ours == set()
    assert not NEVER_SHOWN & ours


def test_argparse_asks_us():
    parser = argparse.ArgumentParser()
    assert argparse._ is arguments._
    assert argparse.ngettext is arguments.ngettext
    assert parser.format_usage().startswith("usage: ")
