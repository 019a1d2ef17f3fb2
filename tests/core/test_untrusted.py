"""Values that somebody else wrote: one JSON object, clean texts, numbers within bounds; never an exception."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpsbar.core.untrusted import clean_text, is_number, is_whole, parse_object


@given(st.binary(max_size=80) | st.text(max_size=80))
def test_garbage_is_no_object(text):
    assert parse_object(text) is None or isinstance(parse_object(text), dict)


@pytest.mark.parametrize("text", [b"[" * 200_000, b'{"a":' * 200_000, "[{}]", "1", "null", '"a"'])
def test_deep_nesting_and_other_values_are_none(text):
    assert parse_object(text) is None


@pytest.mark.parametrize("text", ['{"a": [1]}', b'{"a": [1]}'])
def test_an_object(text):
    assert parse_object(text) == {"a": [1]}


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


def test_a_text_is_one_line_without_keys_and_anything_else_is_empty():
    said = "a\n\x1b[31mb --token=hf_abcdefghijklmnopqrstuvwxyz0123456789"
    assert "hf_abc" not in clean_text(said)
    assert clean_text(said).isprintable()
    assert "hf_abc" in clean_text(said, masked=False)
    assert len(clean_text("x" * 1000)) == 300
    assert [clean_text(value) for value in (None, 3, b"x", ["x"])] == ["", "", "", ""]
