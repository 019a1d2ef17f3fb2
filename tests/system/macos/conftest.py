"""A fake Mac, built once; whatever a test does, it must have made no mistake as its caller."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from system.fakemac.double import FakeMac, build

from mpsbar.system.macos import Computer, power, program, slow_value, sysctl


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _seldom_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of a second is a look's patience, not that of a test on a busy machine."""
    monkeypatch.setattr(slow_value, "PATIENCE", 60.0)


@pytest.fixture(scope="session")
def library(build_once: Callable[..., tuple[Path, str]]) -> Path:
    _, built = build_once("fakemac", lambda folder: str(build(folder) or ""))
    if not built:
        pytest.skip("no C compiler to build the fake Mac with")
    return Path(built)


@pytest.fixture
def careless_mac(library: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMac:
    """For tests that make mistakes."""
    mac = FakeMac(library)
    for module in (power, program, sysctl):
        monkeypatch.setattr(module, "psutil", mac.psutil)
    return mac


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
