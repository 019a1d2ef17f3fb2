"""The clock of a test of `mpsbar top`."""

import time
from types import SimpleNamespace

import pytest


@pytest.fixture
def noon(monkeypatch):
    clock = SimpleNamespace(strftime=lambda *_: "12:00:00")
    monkeypatch.setattr("mpsbar.ui.terminal.state.time", clock)
    monkeypatch.setenv("TZ", "UTC")  # of the axis
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
