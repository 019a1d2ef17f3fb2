"""The dtype probe in short: its headline, its rows for a menu, its JSON."""

import json

import pytest
from probe_samples import BAD, make_probe

from mpsbar.core.dtype_results import Progress, parse_probe_json
from mpsbar.dtypes.summary import (
    build_dtypes,
    build_probe,
    build_rows,
    draw_progress,
    say_headline,
    say_progress,
)
from mpsbar.dtypes.verdicts import find_changes


def test_the_headline_tells_only_surprises():
    assert say_headline(None) == "not probed yet"
    assert say_headline(make_probe(cells=(), ended="no_torch")) == "not probed yet"
    assert say_headline(make_probe()) == "as expected"
    assert (
        say_headline(make_probe(ended="cancelled"))
        == "as expected so far; the probe did not finish"
    )
    two = {"matmul/float16": ("inaccurate", None), "sum/float16": ("inaccurate", None)}
    assert say_headline(make_probe(changed=two)) == "float16 gives wrong results in 2 operations"
    assert say_headline(BAD) == (
        "WRONG RESULTS without an error: an Adam step on a transposed parameter, and 2 more"
    )


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("inaccurate", "float16 gives wrong results in 1 operation"), ("crashed", "float16 crashes in 1 operation"),
        ("hung", "float16 hangs in 1 operation"), ("unsupported", "float16 is unsupported in 1 operation"),
        ("fallback", "float16 falls back to the CPU in 1 operation"),
    ],
)  # fmt: skip
def test_each_surprise_has_its_words(state, words):
    assert say_headline(make_probe(changed={"matmul/float16": (state, "x")})) == words


def test_rows_for_a_menu():
    rows = {row.dtype: row for row in build_rows(BAD)}
    assert rows["float16"].text == "float16        limited, 2.0×"
    assert rows["float16"].why == "wrong results in matmul, linear"
    assert rows["bfloat16"].text == "bfloat16       limited, 1.0×, guides say unsupported"
    assert rows["float64"].text == "float64        unsupported"
    assert rows["float64"].why.startswith("as expected: TypeError: Cannot convert")
    slow = build_rows(make_probe(capability=()))
    assert slow[0].text == "float32        supported, 1.0×, torch says no"


def test_progress():
    assert say_progress(Progress(42, 100)) == "Probing… 42%"
    assert say_progress(Progress(0, None)) == "Probing… (importing torch)"
    assert draw_progress(Progress(50, 100)) == "█" * 15 + "░" * 15 + " Probing… 50%"


def test_json_is_the_whole_and_can_be_compared_with_later():
    record = json.loads(json.dumps(build_probe(BAD, find_changes(make_probe(), BAD))))
    assert parse_probe_json(record) == BAD
    assert record["headline"].startswith("WRONG RESULTS")
    assert record["verdicts"]["float16"] == {
        "verdict": "limited", "why": "wrong results in matmul, linear", "expected": "supported", "guides": "limited",
        "torch_says": True, "speed": 2.0,
    }  # fmt: skip
    adam = next(check for check in record["checks"] if check["name"] == "adam")
    assert (adam["state"], adam["issues"], adam["known_for"]) == (
        "wrong",
        [118115],
        "torch up to 2.3 on macOS before 15",
    )
    assert record["changes"][0] == {
        "kind": "check",
        "name": "adam",
        "before": "right",
        "after": "wrong",
    }
    assert build_probe(BAD)["changes"] is None
    assert record["speeds"][0]["size"] == "1536×1536"
    assert record["is_busy"] is False
    assert (
        record["headlines"][3] == "bfloat16 works here in most operations; guides say it does not"
    )


def test_status_has_the_summary():
    health = build_dtypes(BAD)
    assert health.surprise == say_headline(BAD)
    assert health.failed == {"float16": 2, "bfloat16": 1}
    summary = json.loads(json.dumps(health.summary))
    assert summary["surprises"][1]["text"] == "float16 gives wrong results in 2 operations"
    assert summary["safe"]["float16"] is False
    assert "cells" not in summary
    assert (build_dtypes(None).summary, build_dtypes(make_probe()).surprise) == (None, "")
