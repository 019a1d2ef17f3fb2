"""Fixtures shared by all rooms."""

import shutil
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from worker_kit import Workers

# Hypothesis times what it runs; on two busy cores that says nothing about the code.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Real workers in a run directory of their own; the monitor under test looks there too."""
    kit = Workers()
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(kit.run_dir))
    yield kit
    kit.end()
    shutil.rmtree(kit.folder, ignore_errors=True)
