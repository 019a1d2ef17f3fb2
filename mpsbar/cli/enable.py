"""mpsbar enable: connect an environment's processes, without a change to their code."""

import argparse
import sys

from mpsbar.agent import __version__
from mpsbar.agent.frameworks import join_labels
from mpsbar.cli.python_choice import choose_for_enable
from mpsbar.core.errors import UserError

DESCRIPTION = (
    f"Connects every process of an environment that imports {join_labels('or')}, from its next "
    "start on. Changes only the environment you name; mpsbar disable undoes it."
)
EXAMPLES = (
    "mpsbar enable --python ~/venv/bin/python",
    "mpsbar enable --jupyter",
    "mpsbar enable --list",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--list", action="store_true", help="list the enabled environments")
    choice.add_argument(
        "--python",
        metavar="PATH",
        help="default: the active environment's; without one, a list to choose from",
    )
    choice.add_argument("--jupyter", action="store_true", help="enable the IPython profile")


def run(options: argparse.Namespace) -> int:
    if options.list:
        return _list()
    if options.jupyter:
        return _enable_jupyter()
    return _enable(choose_for_enable(options.python))


def _enable(python: str) -> int:
    from mpsbar.workers.enable import connect

    outcome = connect(python)
    match outcome.state:
        case "refused":
            raise UserError(outcome.error)
        case "enabled_before":
            print(f"{outcome.prefix}: already enabled (agent {__version__})")
        case "enabled":
            print(
                f"{outcome.prefix}: enabled, agent {__version__} answered. "
                f"Processes that import {join_labels('or')} are shown from their next start."
            )
        case "no_answer":
            print(
                f"mpsbar: {outcome.prefix} is enabled, but its agent did not answer; "
                f"{python} -v shows what its site module does",
                file=sys.stderr,
            )
            return 1
    if not outcome.has_framework:
        print(
            f"mpsbar: neither {join_labels('nor')} is installed in {outcome.prefix}: "
            "nothing is shown until one is",
            file=sys.stderr,
        )
    return 0


def _enable_jupyter() -> int:
    from mpsbar.system.paths import data_folder
    from mpsbar.workers import jupyter
    from mpsbar.workers.kernels import find_kernels, why_not_reached
    from mpsbar.workers.run import copy_agent

    try:
        agent = copy_agent(data_folder()).parent
    except OSError as problem:
        raise UserError(f"couldn't copy the agent: {problem.strerror or problem}") from None
    path = jupyter.enable(agent)
    print(f"{path}: every kernel and IPython shell has %mpsbar from its next start")
    missed = [(kernel, why) for kernel in find_kernels() if (why := why_not_reached(kernel, path))]
    if missed:
        print("Not reached:")
    for kernel, why in missed:
        print(f"  {kernel.title} ({kernel.name}): {why}")
    return 0


def _list() -> int:
    """Each environment with its version; copies of an older mpsbar are refreshed."""
    from mpsbar.workers.environments import read_enabled

    pythons = read_enabled()
    if not pythons:
        print("No environment is enabled. To enable one: mpsbar enable --python PATH")
    for python in pythons:
        print(f"{python}  {refresh_agent(python)}")
    return 0


def refresh_agent(python: str) -> str:
    """Replace a copy of an older agent by this version's; returns what is there now, in words."""
    from mpsbar.workers.enable import enable, read_version
    from mpsbar.workers.environments import EnvironmentProblem, read_environment

    try:
        environment = read_environment(python)
        version = read_version(environment.site)
        if version is None:
            return "no longer enabled"
        if not enable(environment):
            return f"agent {version}"
        return f"agent {__version__}, refreshed (was {version})"
    except EnvironmentProblem as problem:
        return f"unusable: {problem}"
