"""Look at this Python with another torch, or none."""

import sys

import fake_torch
import pytest

from mpsbar.doctor.pythons import inspect_python


@pytest.fixture
def look(tmp_path, monkeypatch):
    """look(code): with a package named torch that runs `code`, and a start-up file if one is given."""
    for name in ("SOFTMPS", "SOFTMPS_TORCH"):
        monkeypatch.delenv(name, raising=False)

    def look(code, *, startup="", **arguments):
        path = fake_torch.make_torch(tmp_path / "fake", code)
        if startup:
            fake_torch.add_startup(tmp_path / "fake", startup)
        monkeypatch.setenv("PYTHONPATH", path)
        return inspect_python(sys.executable, **arguments)

    return look
