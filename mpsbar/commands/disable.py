"""mpsbar disable: take the agent's start-up out of an environment again."""

import argparse
import sys

from mpsbar.client import enable as setup
from mpsbar.client import jupyter
from mpsbar.client.environment import EnvironmentProblem, read_environment
from mpsbar.commands.enable import choose_python
from mpsbar.storage.enabled import forget


def run(options: argparse.Namespace) -> int:
    try:
        if options.jupyter:
            path = jupyter.disable()
            print(f"{path}: removed" if path else "mpsbar is not in the IPython profile")
            return 0
        python = choose_python(options.python)
        forget(python)
        environment = read_environment(python)
        changed = setup.disable(environment)
    except (EnvironmentProblem, jupyter.NotOurs) as problem:
        print(f"mpsbar: {problem}", file=sys.stderr)
        return 1
    print(f"{environment.prefix}: {'disabled' if changed else 'was not enabled'}")
    return 0
