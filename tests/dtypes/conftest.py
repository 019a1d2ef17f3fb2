"""Fixtures of the probe's tests."""

import fork_server
import pytest

from mpsbar.system import child_process


@pytest.fixture
def fork_children(monkeypatch):
    """An import of torch is most of what a probe costs."""
    monkeypatch.setattr(child_process, "start_python", fork_server.fork_children())
