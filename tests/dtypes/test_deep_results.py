"""What a deep probe's cells come to: news, changes, JSON."""

import json

import pytest
from dtypes.deep_kit import CELLS, make

from mpsbar.dtypes.deep_results import (
    DeepCell,
    build_deep_changes,
    build_deep_record,
    parse_deep_record,
)


@pytest.mark.parametrize(
    ("state", "expected", "news"),
    [
        ("works", True, None), ("works", False, "better"), ("works", None, None),
        ("inaccurate", True, "worse"), ("inaccurate", False, None), ("inaccurate", None, None),
        ("unsupported", True, "worse"), ("unsupported", False, None), ("fallback", True, "worse"),
        ("fallback", False, None), ("crashed", True, "worse"), ("crashed", False, "worse"),
        ("hung", False, "worse"), ("crashed", None, None), ("meaningless", True, None),
        ("no_memory", True, None), ("unknown", True, None),
    ],
)  # fmt: skip
def test_known_is_told_apart_from_news(state, expected, news):
    assert DeepCell("mm", "float32", state, expected).news == news


def test_json_says_what_was_compared_with_and_what_changed():
    after = make((*CELLS[:3], DeepCell("mm", "float16", "works", True), *CELLS[4:]))
    before = make(torch="2.9.0")
    assert build_deep_changes(None, after) == {"against": None, "changes": None}
    assert build_deep_changes(before, after) == {
        "against": {**after.subject, "torch": "2.9.0", "time": before.time},
        "changes": [{"operation": "mm", "dtype": "float16", "before": "inaccurate", "after": "works"}],
    }  # fmt: skip


def test_json_is_read_again():
    record = json.loads(json.dumps(build_deep_record(make())))
    assert parse_deep_record(record) == make()
    assert record["cells"][2]["news"] == "worse"


def test_odd_values_are_left_out():
    record = build_deep_record(make())
    record["cells"] += [
        7,
        {"operation": "x"},
        {"operation": "x", "dtype": "int8", "state": [], "expected": 1},
    ]
    cells = parse_deep_record(record).cells
    assert cells[-1] == DeepCell("x", "int8", "unknown")
    assert len(cells) == len(CELLS) + 1
