"""Fixtures shared by all rooms."""

import shutil
from collections.abc import Iterator

import appkit
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
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(kit.folder / "data"))
    yield kit
    kit.end()
    shutil.rmtree(kit.folder, ignore_errors=True)


# They import AppKit, and so belong to one session of its double.
BOUND = ("mpsbar.apps.menubar", "mpsbar.desktop")


@pytest.fixture
def private(tmp_path, monkeypatch):
    """Every file the app makes is this test's own."""
    for name in ("DATA", "CONFIG", "LOG"):
        monkeypatch.setenv(f"MPSBAR_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("BAR", "INTERVAL", "ALERTS", "ALERT_CAUSES", "COOL_DOWN"):
        monkeypatch.delenv(f"MPSBAR_{name}", raising=False)
    return tmp_path


@pytest.fixture
def mac(private):
    if why := appkit.why_no_rumps():
        pytest.skip(why)
    with appkit.installed(home=private / "home", bundle="io.github.mpsbar", forget=BOUND) as made:
        yield made
