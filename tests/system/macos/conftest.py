"""A fake Mac, built once; whatever a test does, it must have made no mistake as its caller."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from system.fakemac.double import FakeMac, build

from mpsbar.system import read_timeouts
from mpsbar.system.macos import MacComputer, processes, sysctl


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _background_values_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan waits a tenth of a second, a test on a busy machine longer."""
    monkeypatch.setattr(read_timeouts, "BACKGROUND_SECONDS", 60.0)


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
    for module in (processes, sysctl):
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
