"""Numbers that somebody else wrote: of the right kind, and within bounds."""

import math

import pytest

from mpsbar.core.numbers import is_number, is_whole


@pytest.mark.parametrize(
    ("value", "whole", "number"),
    [
        (0, True, True),
        (9, True, True),
        (0.0, False, True),
        (9.5, False, True),
        (10, False, False),
        (10.0, False, False),
        (-1, False, False),
        (-0.1, False, False),
        (10**400, False, False),
        (math.nan, False, False),
        (math.inf, False, False),
        (True, False, False),
        ("1", False, False),
        (None, False, False),
    ],
)
def test_only_a_number_within_the_bounds_is_one(value, whole, number):
    assert (is_whole(value, 10), is_number(value, 10)) == (whole, number)
    assert is_number(value, 10.0) is number
