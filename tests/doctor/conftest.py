"""Inspects this Python with another torch, or none."""

import sys

import fake_torch
import pytest

from mpsbar.doctor.pythons import inspect_python


@pytest.fixture
def inspect_with(tmp_path, monkeypatch):
    """inspect_with(code): inspect this Python with a package named torch that runs `code`, and a start-up file if one is given."""
    for name in ("SOFTMPS", "SOFTMPS_TORCH"):
        monkeypatch.delenv(name, raising=False)

    def inspect_with(code, *, startup="", **arguments):
        path = fake_torch.make_torch(tmp_path / "fake", code)
        if startup:
            fake_torch.add_startup(tmp_path / "fake", startup)
        monkeypatch.setenv("PYTHONPATH", path)
        return inspect_python(sys.executable, **arguments)

    return inspect_with
