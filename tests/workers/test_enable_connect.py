"""Connect an environment as a click does: real venvs, and what cannot be connected."""

import os
import subprocess
import sys

import pytest

from mpsbar.workers import enable
from mpsbar.workers.enable import connect, read_version
from mpsbar.workers.environments import read_enabled, read_environment


@pytest.fixture
def venv(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(tmp_path / "data"))
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return str(folder / "bin/python")


def test_it_is_enabled_and_its_agent_answers(venv):
    outcome = connect(venv)
    assert (outcome.python, outcome.state, outcome.error) == (venv, "enabled", None)
    assert read_version(read_environment(venv).site) is not None
    assert read_enabled() == [venv]
    assert connect(venv).state == "enabled_before"


def test_an_agent_that_does_not_answer(venv, monkeypatch):
    monkeypatch.setattr(enable, "read_answer", lambda *_: None)
    assert connect(venv).state == "no_answer"


def test_what_it_adds_can_be_written_by_nobody_else(venv):
    before = os.umask(0)
    try:
        assert connect(venv).state == "enabled"
    finally:
        os.umask(before)
    site = read_environment(venv).site
    added = [path for path in site.rglob("*mpsbar*") if "__pycache__" not in path.parts]
    assert added
    assert [path for path in added if path.stat().st_mode & 0o022] == []


@pytest.mark.parametrize("python", ["/no/such/python", "/bin/true"])
def test_what_is_no_python(python):
    outcome = connect(python)
    assert outcome.state == "refused"
    assert python in outcome.error


def test_a_trial_that_cannot_be_made_is_no_answer(venv, monkeypatch, tmp_path, caplog):
    """The environment is enabled by then: only whether its agent answers is not known."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    assert connect(venv).state == "no_answer"
    assert f"the trial of {venv} failed: [Errno 2]" in caplog.text
    assert read_enabled() == [venv]
