"""The real app on the double of AppKit, with a monitor whose snapshots the test writes."""

import appkit
import pytest

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
