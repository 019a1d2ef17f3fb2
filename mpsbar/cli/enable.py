"""mpsbar enable: have an environment's processes seen, without a change of code."""

import argparse
import os
import shutil
import sys

from mpsbar.agent import __version__
from mpsbar.agent.frameworks import join_labels
from mpsbar.system.paths import is_in_app
from mpsbar.workers import enable as setup
from mpsbar.workers import jupyter
from mpsbar.workers.environments import (
    Environment,
    EnvironmentProblem,
    read_enabled,
    read_environment,
)


def run(options: argparse.Namespace) -> int:
    try:
        if options.list:
            return _list()
        if options.jupyter:
            return _enable_jupyter()
        return _enable(choose_python(options.python))
    except (EnvironmentProblem, jupyter.NotOurs) as problem:
        print(f"mpsbar: {problem}", file=sys.stderr)
        return 1


def choose_python(given: str | None) -> str:
    """The Python that was named, else that of the active environment, else our own."""
    if given is not None:
        found = shutil.which(os.path.expanduser(given))  # noqa: PTH111 - which takes text
        if found is None:
            raise EnvironmentProblem(f"there is no {given}, or it cannot be run")
        return os.path.abspath(found)  # noqa: PTH100 - resolving would leave the venv
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if prefix := os.environ.get(variable):
            return os.path.join(prefix, "bin", "python")  # noqa: PTH118
    if is_in_app():
        raise EnvironmentProblem("name the Python to enable: mpsbar enable --python PATH")
    return sys.executable


def _enable(python: str) -> int:
    outcome = setup.connect(python)
    match outcome.state:
        case "refused":
            raise EnvironmentProblem(outcome.error)
        case "enabled_before":
            print(f"{outcome.prefix}: enabled already (agent {__version__})")
        case "enabled":
            print(
                f"{outcome.prefix}: enabled, the agent {__version__} answered. "
                f"Processes that import {join_labels('or')} are seen from their next start."
            )
        case "no_answer":
            print(
                f"mpsbar: {outcome.prefix} is enabled, but its agent did not answer; "
                f"{python} -v shows what its site module does",
                file=sys.stderr,
            )
            return 1
    return 0


def _enable_jupyter() -> int:
    path = jupyter.enable()
    print(f"{path}: every kernel and IPython shell that has mpsbar loads it from its next start")
    return 0


def _list() -> int:
    """Each environment with its version; copies of an older mpsbar are refreshed."""
    pythons = read_enabled()
    if not pythons:
        print("No environment is enabled. mpsbar enable --python PATH enables one.")
    for python in pythons:
        print(f"{python}  {describe(python)}")
    return 0


def describe(python: str) -> str:
    try:
        environment = read_environment(python)
        return _refresh(environment)
    except EnvironmentProblem as problem:
        return f"unusable: {problem}"


def _refresh(environment: Environment) -> str:
    version = setup.read_version(environment.site)
    if version is None:
        return "not enabled any more"
    if not setup.enable(environment):
        return f"agent {version}"
    return f"agent {__version__}, refreshed (was {version})"
