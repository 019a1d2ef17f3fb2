"""The files that come along: one that does not is named."""

import pytest

from mpsbar.system.paths import resource


def test_what_does_not_come_along_is_named():
    with pytest.raises(FileNotFoundError, match=r"none\.png"):
        resource("none.png")
