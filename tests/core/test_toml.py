"""One key changed in somebody's TOML: the rest stays as it was, to the letter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpsbar.core.toml import (
    InvalidTomlError,
    UnchangeableKeyError,
    change_key,
    parse_toml,
    render_value,
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'bar = "dot"\n'),
        ("# mine\n", '# mine\nbar = "dot"\n'),
        ("interval = 5", 'interval = 5\nbar = "dot"\n'),
        ('bar = "gpu"\ninterval = 5\n', 'bar = "dot"\ninterval = 5\n'),
        ('bar="gpu"  # as I like it\n', 'bar = "dot"  # as I like it\n'),
        ('bar = "a # b" # c # d\n', 'bar = "dot" # c # d\n'),
        ('"bar" = "gpu"\n', 'bar = "dot"\n'),
        ("  bar = 'gpu'\n", 'bar = "dot"\n'),
        ('bar = """\ninterval = 3\n"""\ninterval = 5\n', 'bar = "dot"\ninterval = 5\n'),
        ('x = """\nbar = 1\n"""\n', 'x = """\nbar = 1\n"""\nbar = "dot"\n'),
        ("bar = [\n  1, # one\n  2,\n] # end\nx = 1\n", 'bar = "dot" # end\nx = 1\n'),
        ("x = 1\n\n[bars]\nbar = 2\n", 'x = 1\nbar = "dot"\n\n[bars]\nbar = 2\n'),
        ("[bars]\nbar = 2\n", 'bar = "dot"\n[bars]\nbar = 2\n'),
        ("# top\n\n# of bars\n[bars]\n", '# top\n\nbar = "dot"\n# of bars\n[bars]\n'),
        ("x = 1\r\nbar = 2 # two\r\n", 'x = 1\r\nbar = "dot" # two\r\n'),
        ("x = 1 # a\u2028b\n", 'x = 1 # a\u2028b\nbar = "dot"\n'),
        ("bar.x = 1\n", 'bar = "dot"\n'),
    ],
)
def test_a_key_is_changed_in_its_place(before, after):
    assert change_key(before, "bar", "dot") == after
    assert change_key(after, "bar", "dot") == after


@pytest.mark.parametrize("text", ["[bar]\nx = 1\n", "bar.x = 1\nbar.y = 2\n", "[[bar]]\n"])
def test_what_only_a_person_can_change_is_left(text):
    with pytest.raises(UnchangeableKeyError):
        change_key(text, "bar", "dot")


def test_a_statement_longer_than_anybody_writes_is_left_soon():
    with pytest.raises(UnchangeableKeyError):
        change_key("x = [\n" + "1,\n" * 20000 + "]\n", "bar", "dot")


@pytest.mark.parametrize(
    "text", ["bar = ", "bar = 1\nbar = 2", "[" * 3000, "x = 9" + "9" * 5000, "\x00"]
)
def test_text_that_is_not_toml_is_an_error(text):
    with pytest.raises(InvalidTomlError):
        change_key(text, "bar", "dot")


VALUES = st.one_of(
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=("Cs",))),
    st.lists(st.text(st.characters(exclude_categories=("Cs",)))),
)


@given(VALUES)
def test_a_value_is_read_back_as_it_was_written(value):
    assert parse_toml(f"x = {render_value(value)}") == {"x": value}


@given(VALUES, VALUES, st.text(st.characters(exclude_categories=("Cs", "Cc"))))
def test_any_value_beside_any_comment(old, new, comment):
    before = f"a = 1 # {comment}\nbar = {render_value(old)} # {comment}\n# {comment}\nz = 2"
    after = change_key(before, "bar", new)
    assert parse_toml(after) == {"a": 1, "bar": new, "z": 2}
    assert after.count(f"# {comment}") == before.count(f"# {comment}") or comment in render_value(
        old
    )
