"""The clock of a test of `mpsbar top`."""

import time
from types import SimpleNamespace

import pytest


@pytest.fixture
def noon(monkeypatch):
    monkeypatch.setattr("mpsbar.ui.terminal.state.time", SimpleNamespace(time=lambda: 43200.0))
    monkeypatch.setenv("TZ", "UTC")  # of the axis
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
