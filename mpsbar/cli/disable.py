"""mpsbar disable: removes from an environment what mpsbar enable added."""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mpsbar.cli.output import print_stderr
from mpsbar.cli.python_choice import choose_for_disable
from mpsbar.core.errors import UserError
from mpsbar.language import _

DESCRIPTION = _("Removes what mpsbar enable added to an environment.")
EXAMPLES = ("mpsbar disable --python ~/venv/bin/python",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--python", metavar="PATH", help=_("default: the active environment's"))
    choice.add_argument("--jupyter", action="store_true", help=_("disable the IPython profile"))
    choice.add_argument("--all", action="store_true", help=_("disable every enabled environment"))


def run(options: argparse.Namespace) -> int:
    if options.all:
        return _disable_all()
    if options.jupyter:
        _disable_jupyter()
    else:
        _disable(choose_for_disable(options.python))
    return 0


def _disable_all() -> int:
    """Disables all environments, even after one has failed."""
    from mpsbar.workers.environments import read_enabled

    steps: list[Callable[[], None]] = [
        *(partial(_disable_known, python) for python in read_enabled()),
        _disable_jupyter,
    ]
    code = 0
    for step in steps:
        try:
            step()
        except UserError as problem:
            print_stderr(f"mpsbar: {problem}")
            code = 1
    return code


def _disable_known(python: str) -> None:
    from mpsbar.workers.environments import forget_enabled

    if Path(python).exists():
        _disable(python)
        return
    forget_enabled(python)
    print(_("{python}: no longer exists").format(python=python))


def _disable_jupyter() -> None:
    from mpsbar.workers import jupyter

    path = jupyter.disable()
    print(
        _("{path}: removed").format(path=path)
        if path
        else _("mpsbar is not in the IPython profile")
    )


def _disable(python: str) -> None:
    from mpsbar.workers.enable import disable
    from mpsbar.workers.environments import forget_enabled, read_environment

    environment = read_environment(python)
    changed = disable(environment)
    forget_enabled(python)  # last: what could not be removed must stay known
    text = _("{environment}: disabled") if changed else _("{environment}: was not enabled")
    print(text.format(environment=environment.prefix))
