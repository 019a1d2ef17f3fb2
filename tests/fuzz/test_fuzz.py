"""Every reader with anything at all, with nearly right JSON, and with all that fuzzing ever found."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.targets import NAMES, TARGETS

HERE = Path(__file__).parent
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(NAMES),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("name", TARGETS)
def test_anything(name):
    @given(st.binary(max_size=600) | JSON.map(lambda value: json.dumps(value).encode()))
    def check(data):
        TARGETS[name](data)

    check()


@pytest.mark.parametrize("name", TARGETS)
def test_all_that_was_ever_found(name):
    files = [*HERE.glob(f"corpus/{name}/*"), *HERE.glob(f"found/{name}/*")]
    for file in files:
        TARGETS[name](file.read_bytes())
