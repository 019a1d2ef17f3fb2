"""The reason that an error gives, as a person reads it."""

import errno

import pytest

from mpsbar.core.errors import reason_of


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "/a"), "No such file or directory"),
        (OSError("it is not a file"), "it is not a file"),
        (ValueError("no number"), "no number"),
    ],
)  # fmt: skip
def test_it_has_no_number_and_no_file(error, reason):
    assert reason_of(error) == reason
