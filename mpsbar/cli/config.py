"""mpsbar config: where the settings are, what they are, and what is wrong with them."""

import argparse
import os
import sys

DESCRIPTION = (
    "path: where the settings file is, or would be. print: the settings in force and where each "
    "comes from: the default, the file or, first of all, an environment variable. validate: every "
    "mistake in them, one per line. Exit code 0: no mistake, 1: mistakes (validate only), 2: wrong "
    "arguments."
)
EXAMPLES = (
    '$EDITOR "$(mpsbar config path)"',
    "mpsbar config validate",
    "MPSBAR_INTERVAL=5 mpsbar config print",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    choices = ("path", "print", "validate")
    parser.add_argument(
        "what", metavar="path|print|validate", choices=choices, help="what to show (see above)"
    )


def run(options: argparse.Namespace) -> int:
    if options.what == "path":
        from mpsbar.system import paths

        print(paths.settings_file())
        return 0
    return _print() if options.what == "print" else _validate()


def _print() -> int:
    """Print the settings in force, also where the file has mistakes; those go to stderr."""
    from mpsbar.system.settings_file import read_settings
    from mpsbar.ui.text.settings import render_settings

    loaded = read_settings()
    for complaint in loaded.complaints:
        print(f"mpsbar: {complaint}", file=sys.stderr)
    print(render_settings(loaded))
    return 0


def _validate() -> int:
    from mpsbar.system.settings_file import read_settings
    from mpsbar.ui.text.settings import settings_are_well

    loaded = read_settings()
    for complaint in loaded.complaints:
        print(complaint)
    if loaded.complaints:
        return 1
    print(settings_are_well(loaded, os.path.lexists(loaded.file)))
    return 0
