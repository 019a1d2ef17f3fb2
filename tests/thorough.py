"""Tests in two sizes: a small one for `make test`, the whole for `make thorough`."""

from typing import Any

import pytest


def two_sizes(name: str, small: Any, *whole: Any) -> Any:
    """Run a test with `small`; and only by `make thorough` with each of `whole`."""
    slow = [pytest.param(value, marks=pytest.mark.thorough) for value in whole]
    return pytest.mark.parametrize(name, [small, *slow])
