"""The progress that an agent sends: nothing of it is trusted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpsbar.core.progress import RunBar, RunProgress
from mpsbar.ui.text.progress import say_briefly, say_progress
from mpsbar.workers.parse import parse_worker


def parse(progress):
    return parse_worker(1, {}, {"progress": progress}, "live", 0.0).progress


def test_all_fields():
    inner = {"name": "step", "done": 3, "total": 30, "unit": "it", "rate": 2.5, "seconds_left": 11}
    told = {"name": "epochs", "done": 1.5, "total": 4, "unit": "epoch", "inner": inner, "steps": 33}
    assert parse(told | {"steps_per_second": 2.4}) == RunProgress(
        RunBar("epochs", 1.5, 4, "epoch"), RunBar("step", 3, 30, "it", 2.5, 11.0), 33, 2.4
    )


@pytest.mark.parametrize(
    "told", [None, {}, [], "62%", 7, {"done": -1}, {"done": "3"}, {"total": 5}]
)
def test_nothing_usable(told):
    assert parse(told) is None


def test_names_are_made_harmless():
    told = parse({"name": "\x1b[2J" + "x" * 900, "done": 1, "unit": "\n" * 99 + "u" * 99})
    assert told.bar.name.isprintable()
    assert len(told.bar.name) <= 80
    assert len(told.bar.unit) <= 12


def test_a_key_in_a_name_is_masked():
    told = parse({"name": "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD", "done": 1})
    assert "abcdefghijklmnop" not in told.bar.name


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
FIELDS = (
    "name",
    "done",
    "total",
    "unit",
    "rate",
    "seconds_left",
    "inner",
    "steps",
    "steps_per_second",
)


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_whatever_it_is_it_can_be_shown(told):
    progress = parse(told)
    assert say_progress(progress).isprintable()
    assert say_briefly(progress).isprintable()
