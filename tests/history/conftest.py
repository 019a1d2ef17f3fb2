"""A history of its own for each test."""

import pytest
from history.recorder_kit import Play


@pytest.fixture
def file(private):
    return private / "data" / "history.sqlite"


@pytest.fixture
def play(file):
    made = Play(file)
    yield made
    made.recorder.close()
