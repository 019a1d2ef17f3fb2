"""argparse's own words (usage, options, what is wrong with an argument) in our language.

argparse looks its texts up by gettext in a catalogue of Python's own, which no Python has.
"""

import argparse
from typing import Any

from mpsbar import language
from mpsbar.language import _, ngettext


def translate_argparse() -> None:
    """Let argparse look its texts up among ours."""
    module: Any = argparse
    module._, module.ngettext = language._, language.ngettext


def list_words() -> list[str]:
    """What argparse of Python 3.10 to 3.14 says to people, for `make messages` to find."""
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
