"""Connect an environment as a click does: real venvs, and what cannot be connected."""

import subprocess
import sys

import pytest

from mpsbar.client import verify
from mpsbar.client.connect import connect
from mpsbar.client.enable import read_version
from mpsbar.client.environment import read_environment


@pytest.fixture
def venv(tmp_path):
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return str(folder / "bin/python")


def test_it_is_enabled_and_its_agent_answers(venv):
    outcome = connect(venv)
    assert (outcome.python, outcome.state, outcome.error) == (venv, "enabled", None)
    assert read_version(read_environment(venv).site) is not None
    assert connect(venv).state == "enabled_before"


def test_an_agent_that_does_not_answer(venv, monkeypatch):
    monkeypatch.setattr(verify, "read_answer", lambda *_: None)
    assert connect(venv).state == "no_answer"


@pytest.mark.parametrize("python", ["/no/such/python", "/bin/true"])
def test_what_is_no_python(python):
    outcome = connect(python)
    assert outcome.state == "refused"
    assert python in outcome.error
