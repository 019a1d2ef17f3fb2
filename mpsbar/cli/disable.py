"""mpsbar disable: take the agent's start-up out of an environment again."""

import argparse
import sys
from pathlib import Path

from mpsbar.cli.enable import choose_python
from mpsbar.workers import enable as setup
from mpsbar.workers import jupyter
from mpsbar.workers.environments import (
    EnvironmentProblem,
    forget_enabled,
    read_enabled,
    read_environment,
)

DESCRIPTION = "Removes from an environment what mpsbar enable put there."
EXAMPLES = ("mpsbar disable --python ~/venv/bin/python",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--python", metavar="PATH", help="default: the active environment's")
    choice.add_argument("--jupyter", action="store_true", help="disable the IPython profile")
    choice.add_argument("--all", action="store_true", help="disable all that were enabled")


def run(options: argparse.Namespace) -> int:
    if options.all:
        return _disable_all()
    return _disable_jupyter() if options.jupyter else _disable(options.python)


def _disable_all() -> int:
    """Tries all, even after one has failed."""
    codes = [_disable_known(python) for python in read_enabled()]
    return max([*codes, _disable_jupyter()])


def _disable_known(python: str) -> int:
    if Path(python).exists():
        return _disable(python)
    try:
        forget_enabled(python)
    except EnvironmentProblem as problem:
        return _complain(problem)
    print(f"{python}: no longer exists")
    return 0


def _disable_jupyter() -> int:
    try:
        path = jupyter.disable()
    except jupyter.NotOurs as problem:
        return _complain(problem)
    print(f"{path}: removed" if path else "mpsbar is not in the IPython profile")
    return 0


def _disable(given: str | None) -> int:
    try:
        python = choose_python(given)
        environment = read_environment(python)
        changed = setup.disable(environment)
        forget_enabled(python)  # last: what could not be removed must stay known
    except EnvironmentProblem as problem:
        return _complain(problem)
    print(f"{environment.prefix}: {'disabled' if changed else 'was not enabled'}")
    return 0


def _complain(problem: Exception) -> int:
    print(f"mpsbar: {problem}", file=sys.stderr)
    return 1
