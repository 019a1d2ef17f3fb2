"""A fake Mac, built once; whatever a test does, it must have made no mistake as its caller."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from system.fakemac.double import FakeMac, build

from mpsbar.system.macos import processes, sysctl


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
