"""The one table of what MPS can do by torch release."""

import pytest

from mpsbar.agent.mps_support import DTYPE_SINCE, dtype_macos, has_dtype, lowest_macos
from mpsbar.dtypes.operations import DTYPES


@pytest.mark.parametrize(
    ("release", "macos"),
    [((1, 11), None), ((1, 12), (12, 3)), ((2, 4), (12, 3)), ((2, 5), (13, 0)), ((2, 9), (14, 0)), ((3, 0), (15, 0))],
)  # fmt: skip
def test_which_macos_mps_asks_for(release, macos):
    assert lowest_macos(release) == macos


@pytest.mark.parametrize(
    ("dtype", "release", "is_there", "macos"),
    [
        ("float32", (1, 12), True, None),
        ("float32", (1, 11), False, None),
        ("float64", (9, 0), False, None),
        ("bfloat16", (2, 2), False, (14, 0)),
        ("bfloat16", (2, 3), True, (14, 0)),
        ("bfloat16", (2, 9), True, None),  # which runs on macOS 14 or newer only
        ("uint16", (2, 8), False, None),
        ("uint16", (2, 9), True, None),
        ("float8_e4m3fn", (2, 15), True, None),
    ],
)
def test_since_when_a_dtype_is_there(dtype, release, is_there, macos):
    assert has_dtype(dtype, release) == is_there
    assert dtype_macos(dtype, release) == macos


def test_every_dtype_of_the_probe_is_known_to_be_there_or_not():
    assert set(DTYPES) - set(DTYPE_SINCE) == {"float64", "float8_e5m2"}
