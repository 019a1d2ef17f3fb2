"""A fake Mac, and a computer that reads it by a clock of the test."""

from collections.abc import Callable

import pytest
from system.fakemac import fixtures
from system.fakemac.double import FakeMac

from mpsbar.system import read_timeouts
from mpsbar.system.macos import MacComputer

library, careless_mac, mac = fixtures.library, fixtures.careless_mac, fixtures.mac


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _background_values_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan waits a tenth of a second, a test on a busy machine longer."""
    monkeypatch.setattr(read_timeouts, "BACKGROUND_SECONDS", 60.0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_computer(careless_mac: FakeMac, clock: Clock) -> Callable[..., MacComputer]:
    def make(**options: object) -> MacComputer:
        defaults = {
            "libraries": careless_mac.libraries,
            "read_budget": lambda: None,
            "clock": clock,
        }
        return MacComputer(**{**defaults, **options})

    return make


@pytest.fixture
def computer(make_computer: Callable[..., MacComputer]) -> MacComputer:
    return make_computer()
