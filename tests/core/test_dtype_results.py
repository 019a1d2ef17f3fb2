"""A result as a record: written, read again, and what is said of one that is not whole."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probe_samples import make_probe

from mpsbar.core.dtype_results import Progress, build_probe_json, find_complaint, parse_probe_json


def test_read_again_it_is_the_same():
    probe = make_probe()
    assert parse_probe_json(json.loads(json.dumps(build_probe_json(probe)))) == probe


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"kind": "else"}, "not a result of mpsbar probe"), ({"schema": 2}, "another version of mpsbar (schema 2)"),
        ({"ended": None}, "damaged"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_another(change, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        parse_probe_json({**build_probe_json(make_probe()), **change})


def test_a_field_of_another_kind_is_not_known():
    record = {**build_probe_json(make_probe()), "torch": 7, "cells": [{"operation": "add"}, 3, {"operation": "a", "dtype": "b", "state": "odd"}],
              "checks": "none", "memory": True, "time": "now", "new": {}}  # fmt: skip
    probe = parse_probe_json(record)
    assert (probe.torch, probe.memory, probe.time, probe.checks) == (None, None, None, ())
    assert [(cell.operation, cell.state) for cell in probe.cells] == [("a", "unknown")]


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_anything_is_read_or_refused(value):
    for record in (
        value,
        {
            **build_probe_json(make_probe(cells=(), checks=())),
            "cells": value,
            "torch": value,
            "memory": value,
        },
    ):
        try:
            probe = parse_probe_json(record)
        except ValueError:
            continue
        assert isinstance(probe.cells, tuple)


def test_names_are_fit_to_be_shown():
    probe = parse_probe_json(
        {**build_probe_json(make_probe()), "python": "/bin/\x1b[31mred", "torch": "2\n3"}
    )
    assert probe.python == "/bin/\N{REPLACEMENT CHARACTER}[31mred"
    assert probe.torch == "2 3"


def test_progress():
    assert [
        Progress(0, None).percent,
        Progress(0, 0).percent,
        Progress(42, 100).percent,
        Progress(273, 273).percent,
    ] == [0, 0, 42, 100]


def test_the_complaint_is_what_it_answered_else_the_end_of_its_stderr():
    tails = (b"", b"Traceback:\n  token=abcdefgh12345678\n\n")
    assert find_complaint([None, {}, "", "no libc10"], *tails) == "no libc10"
    assert "abcdefgh12345678" not in find_complaint([None], *tails)
    assert find_complaint([], b"a\nb\n") == "b"
    assert find_complaint([None], b"", b" \n") is None
