"""What all commands share for their arguments: error and help format, and argument types."""

import argparse
import os
import shutil
from typing import Any, NoReturn

from mpsbar.agent.frameworks import LIMITABLE
from mpsbar.language import _, ngettext

# argparse looks up its texts by gettext in a catalogue of Python's own, which no Python ships. This
# makes it look them up in ours.
_argparse: Any = argparse
_argparse._, _argparse.ngettext = _, ngettext


class Parser(argparse.ArgumentParser):
    """Reports wrong arguments in one line, with exit code 2."""

    def error(self, message: str) -> NoReturn:
        text = _("{program}: {message} (see {program} --help)")
        self.exit(2, text.format(program=self.prog, message=message) + "\n")


class HelpFormatter(argparse.HelpFormatter):
    """Wraps by cells, of which a Korean letter takes two; keeps the line breaks of examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return text
        return "\n".join(indent + line for line in self._split_lines(text, width - len(indent)))

    def _split_lines(self, text: str, width: int) -> list[str]:
        if text.isascii():
            return super()._split_lines(text, width)
        from mpsbar.ui.text.cells import wrap  # English help needs no import

        return wrap(" ".join(text.split()), width)

    def _format_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None) -> str:
        prefix = _("usage: ") if prefix is None else prefix
        if prefix.isascii():
            return super()._format_usage(usage, actions, groups, prefix)
        from mpsbar.ui.text.cells import width

        as_wide = "_" * width(prefix)
        if usage is not None:  # its lines are indented for the English prefix
            usage = usage.replace("\n", "\n" + " " * (width(prefix) - len("usage: ")))
        return super()._format_usage(usage, actions, groups, as_wide).replace(as_wide, prefix, 1)


def explain_limit(is_running: bool) -> str:
    """Says what a limit means, for a running process or for one that mpsbar starts."""
    sentences: list[str] = []
    for allocator in LIMITABLE:
        more = allocator.while_running if is_running else allocator.from_start
        sentences += filter(None, (allocator.above_limit, more))
    return " ".join(map(_, sentences))


def parse_whole(text: str, most: int, complaint: str) -> int:
    """Parses a whole number from 1 to `most`."""
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= most:
        raise argparse.ArgumentTypeError(complaint.format(text=text, most=most))
    return int(text)


def parse_pid(text: str) -> int:
    return parse_whole(text, 2**31 - 1, _("not a process ID: {text!r}"))


def _parse_real(text: str, most: float, complaint: str) -> float:
    """Parses a number above 0, up to `most`."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= most:
        raise argparse.ArgumentTypeError(complaint.format(text=text))
    return value


def parse_seconds(text: str) -> float:
    return _parse_real(text, 3600, _("not a number of seconds between 0 and 3600: {text!r}"))


def parse_moment(text: str) -> float:
    """Parses a time, in seconds since 1970."""
    return _parse_real(text, 2**40, _("not a time in seconds since 1970: {text!r}"))


def find_python(name: str) -> str:
    """Returns the absolute path of a Python given by path or command name; it may not exist."""
    name = os.path.expanduser(name)  # noqa: PTH111 - which takes text
    return os.path.abspath(shutil.which(name) or name)  # noqa: PTH100 - resolving would leave the venv


def list_words() -> list[str]:
    """Lists the texts of argparse in Python 3.10 to 3.14, for `make messages` to find."""
    return [
        _("usage: "),
        _("positional arguments"),
        _("options"),
        _("%(heading)s:"),
        _("show this help message and exit"),
        _("show program's version number and exit"),
        _("argument %(argument_name)s: %(message)s"),
        _("ambiguous option: %(option)s could match %(matches)s"),
        _("expected at least one argument"),
        _("expected at most one argument"),
        _("expected one argument"),
        ngettext("expected %s argument", "expected %s arguments", 2),
        _("ignored explicit argument %r"),
        _("invalid %(type)s value: %(value)r"),
        _("invalid choice: %(value)r (choose from %(choices)s)"),
        _("invalid choice: %(value)r, maybe you meant %(closest)r? (choose from %(choices)s)"),
        _("not allowed with argument %s"),
        _("one of the arguments %s is required"),
        _("the following arguments are required: %s"),
        _("unrecognized arguments: %s"),
    ]
