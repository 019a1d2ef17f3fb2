"""The fixture of tests that import torch into their own process: they carry the group "torch"."""

import pytest


@pytest.fixture
def torch():
    return pytest.importorskip("torch")
