"""Run a command of mpsbar, connected only to the workers of the test."""

from functools import partial

import pytest
from cli.command_kit import run_command
from fake_torch import make_torch, working


@pytest.fixture
def light_torch(workers):
    """For PYTHONPATH, where a command looks at Pythons beside what is tested: two seconds less a look."""
    return make_torch(workers.folder / "light torch", working())


@pytest.fixture
def probe_env(workers):
    """No active environment, and no setting of torch or of the terminal."""
    left_out = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "TERM", "NO_COLOR")
    return {
        k: v for k, v in workers.env().items() if k not in left_out and not k.startswith("PYTORCH_")
    }


@pytest.fixture
def mpsbar(workers):
    return partial(run_command, workers)
