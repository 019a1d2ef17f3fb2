"""mpsbar enable: connects an environment's processes, without a change to their code."""

import argparse

from mpsbar.agent import __version__
from mpsbar.agent.frameworks import join_labels
from mpsbar.cli.output import print_stderr
from mpsbar.cli.python_choice import choose_for_enable
from mpsbar.core.errors import UserError, reason_of
from mpsbar.language import _

DESCRIPTION = _(
    "Connects every process of an environment that imports {frameworks}, the next time it "
    "starts. Changes only the environment you name; mpsbar disable undoes it."
).format(frameworks=join_labels(_("or")))
EXAMPLES = (
    "mpsbar enable --python ~/venv/bin/python",
    "mpsbar enable --jupyter",
    "mpsbar enable --list",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--list", action="store_true", help=_("list the enabled environments"))
    choice.add_argument(
        "--python",
        metavar="PATH",
        help=_("default: the active environment's; without one, a list to choose from"),
    )
    choice.add_argument("--jupyter", action="store_true", help=_("enable the IPython profile"))


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
            print(
                _("{environment}: already enabled (agent {version})").format(
                    environment=outcome.prefix, version=__version__
                )
            )
        case "enabled":
            print(
                _(
                    "{environment}: enabled, agent {version} answered. "
                    "Processes that import {frameworks} are shown the next time they start."
                ).format(
                    environment=outcome.prefix, version=__version__, frameworks=join_labels(_("or"))
                )
            )
        case "no_answer":
            print_stderr(
                _(
                    "mpsbar: {environment} is enabled, but its agent did not answer; "
                    "{python} -v shows what its site module does"
                ).format(environment=outcome.prefix, python=python)
            )
            return 1
    if not outcome.has_framework:
        print_stderr(
            _(
                "mpsbar: neither {frameworks} is installed in {environment}: "
                "nothing is shown until one is"
            ).format(frameworks=join_labels(_("nor")), environment=outcome.prefix)
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
        raise UserError(
            _("couldn't copy the agent: {problem}").format(problem=reason_of(problem))
        ) from None
    path = jupyter.enable(agent)
    print(
        _("{path}: every kernel and IPython shell that starts from now on has %mpsbar").format(
            path=path
        )
    )
    missed = [(kernel, why) for kernel in find_kernels() if (why := why_not_reached(kernel, path))]
    if missed:
        print(_("Not reached:"))
    for kernel, why in missed:
        print(f"  {kernel.title} ({kernel.name}): {why}")
    return 0


def _list() -> int:
    """Prints each enabled environment with its agent's version, and updates older agents."""
    from mpsbar.workers.environments import read_enabled

    pythons = read_enabled()
    if not pythons:
        print(_("No environment is enabled. To enable one: mpsbar enable --python PATH"))
    for python in pythons:
        print(f"{python}  {refresh_agent(python)}")
    return 0


def refresh_agent(python: str) -> str:
    """Replaces an older agent by this version's. Returns in words what is installed now."""
    from mpsbar.workers.enable import enable, read_version
    from mpsbar.workers.environments import UnusablePythonError, read_environment

    try:
        environment = read_environment(python)
        version = read_version(environment.site)
        if version is None:
            return _("no longer enabled")
        if not enable(environment):
            return _("agent {version}").format(version=version)
        return _("agent {version}, refreshed (was {old})").format(version=__version__, old=version)
    except UnusablePythonError as problem:
        return _("unusable: {problem}").format(problem=problem)
