"""Enable one interpreter and see that its agent answers: `mpsbar enable`, from wherever asked."""

import os

from mpsbar.client import enable, verify
from mpsbar.client.environment import EnvironmentProblem, read_environment
from mpsbar.model.action import Connected


def connect(python: str) -> Connected:
    """Never raises: whatever happens is an outcome."""
    try:
        environment = read_environment(python)
        if not enable.enable(environment):
            return Connected(python, "enabled_before")
    except EnvironmentProblem as problem:
        return Connected(python, "refused", error=str(problem))
    answered = verify.read_answer(environment, dict(os.environ))
    return Connected(python, "no_answer" if answered is None else "enabled")
