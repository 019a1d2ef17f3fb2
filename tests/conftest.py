"""Fixtures shared by all rooms."""

import shutil
from collections.abc import Iterator

import pytest
from worker_kit import Workers


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Real workers in a run directory of their own; the monitor under test looks there too."""
    kit = Workers()
    monkeypatch.setenv("MPSBAR_RUN_DIR", str(kit.run_dir))
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(kit.folder / "data"))
    yield kit
    kit.end()
    shutil.rmtree(kit.folder, ignore_errors=True)
