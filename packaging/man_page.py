"""The man page mpsbar.1, from the parser. (argparse-manpage would lose the groups and examples.)"""

import command_line

from mpsbar import __version__

_HEAD = f"""\
.\\" Written by packaging/build_reference.py from the command line itself.
.TH MPSBAR 1 "" "mpsbar {__version__}" "User Commands"
.SH NAME
mpsbar \\- who holds the GPU memory, for PyTorch and MLX on Apple silicon
.SH SYNOPSIS
.B mpsbar
.RI [ COMMAND
.IR \\&... ]
.SH DESCRIPTION
Shows the memory that the allocators of PyTorch and MLX processes hold, frees their caches without
stopping them, limits them, says how runs ended, and measures which dtypes work on this computer.
Without a command: the menu bar on a Mac; elsewhere
.BR "mpsbar top" ,
or
.B mpsbar status
in a pipe.
"""
_EXIT = """\
.SH EXIT STATUS
0: done, all well. 1: a problem was found, or it could not be done; the help of each command says
more. 2: wrong arguments. 130: Ctrl\\-C.
"""
_FILES = """\
.SH FILES
.B mpsbar config path
names the settings file;
.B mpsbar doctor
prints where everything else is.
"""


def escape(text: str) -> str:
    """Text for troff: hyphens that can be copied, no control lines, nothing beyond ASCII."""
    for character, name in (
        ("\\", r"\e"), ("-", r"\-"), ("…", r"\&..."), ("·", r"\(bu"), ("→", r"\(->"),
        ("×", r"\(mu"), ("'", r"\(aq"), ("`", r"\(ga"), ("^", r"\(ha"), ("~", r"\(ti"),
    ):  # fmt: skip
        text = text.replace(character, name)
    return r"\&" + text if text.startswith((".", "'")) else text


def _paragraph(argument: command_line.Argument) -> str:
    names = ", ".join(f"\\fB{escape(name)}\\fR" for name in argument.names)
    return f".TP\n{names}\n{escape(argument.help)}\n"


def _render_command(command: command_line.Command) -> str:
    lines = [f".SS mpsbar {command.name}\n{escape(command.summary)}\n"]
    lines.append(f".PP\n.nf\n{escape(command.usage)}\n.fi\n")
    lines.append(f".PP\n{escape(command.description)}\n")
    lines += [_paragraph(argument) for argument in command.arguments]
    examples = "\n".join(map(escape, command.examples))
    lines.append(f".PP\nExamples:\n.PP\n.RS 4\n.nf\n{examples}\n.fi\n.RE\n")
    return "".join(lines)


def build_man_page() -> str:
    parts = [_HEAD, ".SH OPTIONS\n"]
    parts += [_paragraph(option) for option in command_line.read_main_options()]
    group = None
    for command in command_line.read_commands():
        if command.group != group:
            group = command.group
            parts.append(f".SH {group.upper()}\n")
        parts.append(_render_command(command))
    parts.append(".SH ENVIRONMENT\n")
    for name, text in command_line.VARIABLES.items():
        parts.append(f".TP\n.B {name}\n{escape(text)}\n")
    return "".join([*parts, _FILES, _EXIT])
