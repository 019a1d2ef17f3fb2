"""A fake Mac, built once; whatever a test does, it must have made no mistake as its caller."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from machine.fakemac.double import FakeMac, build

from mpsbar.machine.macos import Computer, seldom


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _seldom_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of a second is a look's patience, not that of a test on a busy machine."""
    monkeypatch.setattr(seldom, "PATIENCE", 60.0)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = build(tmp_path_factory.mktemp("fakemac"))
    if built is None:
        pytest.skip("no C compiler to build the fake Mac with")
    return built


@pytest.fixture
def careless_mac(library: Path) -> FakeMac:
    """For tests that make mistakes."""
    return FakeMac(library)


@pytest.fixture
def mac(careless_mac: FakeMac) -> Iterator[FakeMac]:
    yield careless_mac
    assert careless_mac.faults == ""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_computer(careless_mac: FakeMac, clock: Clock) -> Callable[..., Computer]:
    def make(**options: object) -> Computer:
        defaults = {
            "libraries": careless_mac.libraries,
            "read_budget": lambda: None,
            "clock": clock,
        }
        return Computer(**{**defaults, **options})

    return make


@pytest.fixture
def computer(make_computer: Callable[..., Computer]) -> Computer:
    return make_computer()
