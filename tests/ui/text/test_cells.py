"""Text in the cells of a terminal keeps its columns, whatever is written in it."""

import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcwidth

from mpsbar.ui.text import cells
from mpsbar.ui.text.cells import align, cut, fit, width, wrap


def test_wide_and_combining_characters_keep_the_columns():
    assert width("日本") == 4
    assert width("e\u0301") == 1
    assert fit("日本語", 5) == "日本…"
    assert fit("日本語", 4) == "日… "
    assert fit("ab", 4, to_right=True) == "  ab"
    assert cut("a\x1b[31mb", 20) == "a\N{REPLACEMENT CHARACTER}[31mb"
    assert wrap("one two three", 7) == ["one two", "three"]
    assert wrap("abcdefghij", 4) == ["abc…"]
    assert wrap("", 4) == [""]


@pytest.mark.parametrize(
    ("text", "wide"),
    [("日本", 4), ("e\u0301", 1), ("☀️", 2), ("👩\u200d🔬", 2), ("🇩🇪", 2), ("a\u200bb", 2), ("a\x1bb", 2), ("", 0)],
)  # fmt: skip
def test_a_cluster_has_one_width(text, wide):
    assert width(text) == wide


def test_the_short_list_of_narrow_characters_agrees_with_the_tables():
    for code in range(0x3000):
        char = chr(code)
        if cells._NARROW.fullmatch(char) and unicodedata.category(char) != "Cn":
            assert wcwidth(char) == 1, hex(code)


@given(
    st.text(st.sampled_from("ab日語é\u0301☀\ufe0f👩\u200d🔬🇩🇪–…█\x1b"), max_size=20),
    st.integers(0, 12),
)
def test_what_was_fitted_has_just_that_width(text, room):
    assert width(fit(text, room)) == room
    assert width(cut(text, room)) <= room


@pytest.mark.parametrize(
    ("most", "shown"),
    [(9, "abcd…mnop"), (10, "abcde…mnop"), (3, "ab…"), (0, ""), (16, "abcdefghijklmnop")],
)
def test_a_name_is_cut_in_its_middle(most, shown):
    assert cells.cut_middle("abcdefghijklmnop", most) == shown


def test_a_wide_name_is_cut_in_its_middle_by_cells():
    assert cells.cut_middle("학습모델.py", 9) == "학습….py"
    assert width(cells.cut_middle("학습모델학습모델", 8)) <= 8
    assert cells.cut_middle("a" * 5000 + "the end", 16) == "aaaaaaaa…the end"


def test_a_plain_screen_needs_no_tables():
    code = """
import sys
from mpsbar.ui.text.cells import fit
fit("train.py – 62% · ≤ 3.1 GB ▁▂█ └─┤ …", 20)
print("wcwidth" in sys.modules)
fit("日本", 20)
print("wcwidth" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\nTrue\n"


def test_rows_whose_columns_are_below_each_other():
    rows = [("dtype", "works"), ("한글", "7"), ("float32", "12")]
    assert align(rows) == ["dtype    works", "한글     7    ", "float32  12   "]
    assert align(rows, to_right=True) == ["dtype    works", "한글         7", "float32     12"]
