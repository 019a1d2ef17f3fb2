"""Text that somebody else wrote: one JSON object, or None, and never an exception."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpsbar.core.json_object import parse_object


@given(st.binary(max_size=80) | st.text(max_size=80))
def test_garbage_is_no_object(text):
    assert parse_object(text) is None or isinstance(parse_object(text), dict)


@pytest.mark.parametrize("text", [b"[" * 200_000, b'{"a":' * 200_000, "[{}]", "1", "null", '"a"'])
def test_deep_nesting_and_other_values_are_none(text):
    assert parse_object(text) is None


@pytest.mark.parametrize("text", ['{"a": [1]}', b'{"a": [1]}'])
def test_an_object(text):
    assert parse_object(text) == {"a": [1]}
