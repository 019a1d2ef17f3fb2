"""Fixtures of the probe's tests."""

import fork_server
import pytest
from probe_kit import LOAD_SAMPLES, LOAD_SAMPLES_ON_MPS

from mpsbar.system import child_process


@pytest.fixture
def fork_children(monkeypatch):
    """An import of torch is most of what a probe costs."""
    monkeypatch.setattr(child_process, "start_python", fork_server.fork_children())


@pytest.fixture
def fork_deep_children(monkeypatch):
    """The same for a deep probe, whose child processes also import torch's samples."""
    starts = [fork_server.fork_children(after) for after in (LOAD_SAMPLES, LOAD_SAMPLES_ON_MPS)]

    def start(python, arguments, environ, **options):
        return starts["SOFTMPS" in environ](python, arguments, environ, **options)

    monkeypatch.setattr(child_process, "start_python", start)
