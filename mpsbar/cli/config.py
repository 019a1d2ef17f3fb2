"""mpsbar config: shows, edits and validates the settings."""

import argparse
import os

from mpsbar.cli.output import print_stderr
from mpsbar.language import _

DESCRIPTION = _(
    "path: where the settings file is, or would be. edit: open it in $VISUAL or $EDITOR (else nano "
    "or vi), with every setting as a comment where there is no file yet, then validate it. print: "
    "each setting and its source: the default, the file, or an environment variable, which takes "
    "precedence. validate: every mistake in them, one per line. Exit code 0: no mistake, "
    "1: mistakes (validate and edit only), 2: wrong arguments."
)
EXAMPLES = (
    "mpsbar config edit",
    "mpsbar config validate",
    "MPSBAR_INTERVAL=5 mpsbar config print",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    choices = ("path", "edit", "print", "validate")
    parser.add_argument(
        "what", metavar="|".join(choices), choices=choices, help=_("what to show (see above)")
    )


def run(options: argparse.Namespace) -> int:
    if options.what == "path":
        from mpsbar.system import paths

        print(paths.settings_file())
        return 0
    return {"edit": _edit, "print": _print, "validate": _validate}[options.what]()


def _edit() -> int:
    """Opens the file in the user's editor; a new file has every setting as a comment."""
    import shlex
    import shutil
    import subprocess

    from mpsbar.core.errors import UserError
    from mpsbar.system import paths
    from mpsbar.system.files import replace_own_file
    from mpsbar.ui.text.config import render_template

    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    try:
        command = shlex.split(named) if named else []
    except ValueError:
        raise UserError(
            _("$VISUAL or $EDITOR is not a command: {named}").format(named=named)
        ) from None
    if not command:
        command = [path for name in ("nano", "vi") if (path := shutil.which(name))][:1]
    if not command:
        raise UserError(_("no editor was found: set $EDITOR, such as EDITOR=nano"))
    if shutil.which(command[0]) is None:
        raise UserError(
            _("the editor {command} was not found: set $EDITOR to another one").format(
                command=command[0]
            )
        )
    file = paths.settings_file()
    if not os.path.lexists(file):
        replace_own_file(file, render_template().encode())
    if (code := subprocess.call([*command, str(file)])) != 0:
        raise UserError(
            _("the editor {command} ended with code {code}").format(command=command[0], code=code)
        )
    return _validate()


def _print() -> int:
    """Prints the settings in force, even if the file has mistakes; mistakes go to stderr."""
    from mpsbar.system.settings_file import read_settings
    from mpsbar.ui.text.config import render_settings

    loaded = read_settings()
    for complaint in loaded.complaints:
        print_stderr(f"mpsbar: {complaint}")
    print(render_settings(loaded))
    return 0


def _validate() -> int:
    from mpsbar.system.settings_file import read_settings
    from mpsbar.ui.text.config import say_settings_ok

    loaded = read_settings()
    for complaint in loaded.complaints:
        print(complaint)
    if loaded.complaints:
        return 1
    print(say_settings_ok(loaded, os.path.lexists(loaded.file)))
    return 0
