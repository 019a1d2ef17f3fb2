"""What a deep probe's cells come to: news, changes, the page, CSV, JSON; and files that are damaged."""

import csv
import json

import pytest

from mpsbar.core.errors import UserError
from mpsbar.dtypes import deep_files
from mpsbar.dtypes.deep_results import (
    DeepCell,
    DeepProbe,
    build_deep_changes,
    build_deep_record,
    find_deep_changes,
    parse_deep_record,
)
from mpsbar.dtypes.deep_text import (
    draw_bar,
    render_csv,
    render_deep,
    say_deep_headline,
    say_deep_progress,
)
from mpsbar.dtypes.table import TableStyle

CELLS = (
    DeepCell("add", "float32", "works", True, error=0.0),
    DeepCell("add", "float64", "unsupported", False, "TypeError: no float64"),
    DeepCell("mm", "float32", "crashed", True, "SIGABRT"),
    DeepCell("mm", "float16", "inaccurate", True, "largest error: 0.3"),
    DeepCell("mm", "bfloat16", "works", False),
    DeepCell("sort", "int8", "meaningless", False),
)


def make(cells=CELLS, **values):
    given = {
        "python": "/venv/bin/python", "ended": "ok", "prefix": "/venv", "version": "3.11.7", "torch": "2.13.0",
        "system": "15.1", "os": "macOS", "device": "mps", "device_name": "Apple M1", "total": len(cells),
        "time": 1.7e9, "seconds": 90.0, "cells": cells,
    }  # fmt: skip
    return DeepProbe(**(given | values))


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


def test_the_whole_page():
    assert render_deep(make(), TableStyle(), "/data/deep.json") == (
        "2 results are worse than torch itself expects: 1 wrong, 1 crashed\n"
        "1 works although torch's tests expect a failure (perhaps with other samples)\n"
        "torch 2.13.0 · mps (Apple M1) · Python 3.11.7 · macOS 15.1 · /venv/bin/python\n"
        "\n"
        "DTYPE     WORKS  WRONG RESULTS  UNSUPPORTED  CRASHES  NOT APPLICABLE  UNEXPECTED\n"
        "float32       1              –            –        1               –           1\n"
        "float16       –              1            –        –               –           1\n"
        "bfloat16      1              –            –        –               –           –\n"
        "float64       –              –            1        –               –           –\n"
        "int8          –              –            –        –               1           –\n"
        "\n"
        "mm (float16): wrong results: largest error: 0.3\n"
        "mm (float32): crashes: SIGABRT\n"
        "\n"
        "3 operations × 5 dtypes, one sample each\n"
        "took 90 s\n"
        "saved in /data/deep.json"
    )


def test_one_operation_is_not_several():
    page = render_deep(make(CELLS[2:5]), TableStyle())
    assert "\n1 operation × 3 dtypes, one sample each\n" in page


def test_headlines_of_other_days():
    quiet = make(CELLS[:2])
    assert say_deep_headline(quiet) == "Nothing is worse than torch itself expects."
    unknown = make((DeepCell("mm", "float32", "inaccurate", None),))
    assert "has no expectations for this device" in say_deep_headline(unknown)
    cut = render_deep(make(CELLS[:2], ended="cancelled", total=8364), TableStyle())
    assert "Cancelled: measured 2 of 8364" in cut
    assert "nothing to compare them with" in render_deep(make(device="cpu"), TableStyle())


def test_what_is_not_known_has_a_column():
    cells = (DeepCell("mm", "int8", "unknown", True), DeepCell("mm", "bool", "no_memory", True))
    page = render_deep(make(cells), TableStyle())
    assert "DTYPE  NO MEMORY  NOT MEASURED  UNEXPECTED\n" in page
    assert "int8           –             1           –\n" in page


def test_what_changed_comes_first():
    after = make((*CELLS[:3], DeepCell("mm", "float16", "works", True), *CELLS[4:]))
    page = render_deep(after, TableStyle(), None, make())
    assert page.startswith("What changed:\n  mm (float16): wrong results → works\n\n")
    same = render_deep(make(), TableStyle(), None, make())
    assert same.startswith("What changed:\n  no operation changed\n")
    other = make(torch="2.9.0", device_name="Apple M3 Max", system="26.3")
    assert render_deep(other, TableStyle(), None, make()).startswith(
        "What changed:\n  machine: Apple M1 → Apple M3 Max\n  torch: 2.13.0 → 2.9.0\n"
        "  system: 15.1 → 26.3\n  no operation changed\n\n"
    )
    holes = make((DeepCell("mm", "float16", "unknown", True),))
    assert find_deep_changes(make(), holes) == find_deep_changes(holes, make()) == ()


def test_json_says_what_was_compared_with_and_what_changed():
    after = make((*CELLS[:3], DeepCell("mm", "float16", "works", True), *CELLS[4:]))
    before = make(torch="2.9.0")
    assert build_deep_changes(None, after) == {"against": None, "changes": None}
    assert build_deep_changes(before, after) == {
        "against": {**after.subject, "torch": "2.9.0", "time": before.time},
        "changes": [{"operation": "mm", "dtype": "float16", "before": "inaccurate", "after": "works"}],
    }  # fmt: skip


def test_csv_has_a_line_for_each():
    rows = list(csv.DictReader(render_csv(make()).splitlines()))
    assert len(rows) == len(CELLS)
    assert rows[3] == {
        "operation": "mm", "dtype": "float16", "state": "inaccurate", "expected": "works", "news": "worse",
        "error": "", "text": "largest error: 0.3",
    }  # fmt: skip


def test_json_is_read_again():
    record = json.loads(json.dumps(build_deep_record(make())))
    assert parse_deep_record(record) == make()
    assert record["cells"][2]["news"] == "worse"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is incomplete or not JSON"), ("[]", "not a result of mpsbar probe --deep"),
        ('{"kind": "mpsbar probe", "schema": 1}', "not a result of mpsbar probe --deep"),
        ('{"kind": "mpsbar deep probe", "schema": 9}', "written by another version"),
        ('{"kind": "mpsbar deep probe", "schema": 1, "ended": 3}', "outcome of the probe"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_said_to_be_damaged(tmp_path, text, words):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UserError, match=words):
        deep_files.read_deep_result(tmp_path / "x.json")


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


def test_progress_in_words():
    assert say_deep_progress(0, None, None) == "Probing… (importing torch and its samples)"
    assert say_deep_progress(42, 100, None) == "Probing… 42% (42 of 100)"
    assert say_deep_progress(42, 100, 12.2) == "Probing… 42% (42 of 100), about 12 s left"
    assert (draw_bar(5, 10, 10), draw_bar(0, None, 4)) == ("█████░░░░░", "░░░░")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(deep_files.paths, "probe_folder", lambda: tmp_path / "probes")
    return tmp_path / "probes" / "deep"


IDENTITY = {
    "prefix": "/venv", "version": "3.11.7", "torch": "2.13.0", "system": "15.1", "os": "macOS", "device": "mps",
    "fallback": None,
}  # fmt: skip


def test_what_was_measured_is_kept_line_by_line(folder):
    file = deep_files.PartialFile(IDENTITY, "/venv/bin/python", is_resumed=False)
    file.add([{"cell": "mm/float32", "state": "works", "expected": True}])
    found = deep_files.read_partial("/venv/bin/python")
    assert found["cells"] == {"mm/float32": DeepCell("mm", "float32", "works", True)}
    assert {name: found[name] for name in IDENTITY} == IDENTITY
    assert deep_files.read_partial("/other/python") is None
    (path,) = folder.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    # Killed in the middle of a line, then resumed.
    file.close(is_finished=False)
    with path.open("a") as text:
        text.write('{"cell": "mm/floa')
    more = deep_files.PartialFile(IDENTITY, "/venv/bin/python", is_resumed=True)
    more.add([{"cell": "mm/int8", "state": "hung"}])
    assert list(deep_files.read_partial("/venv/bin/python")["cells"]) == ["mm/float32", "mm/int8"]
    more.close(is_finished=True)
    assert deep_files.read_partial("/venv/bin/python") is None


def test_only_a_whole_result_is_saved(folder):
    assert deep_files.write_deep_result(make(ended="cancelled")) is None
    assert deep_files.write_deep_result(make(only="mm")) is None
    assert deep_files.find_deep_result() is None
    file = deep_files.write_deep_result(make())
    assert deep_files.find_deep_result() == make()
    assert file.parent == folder
    folder.chmod(0o777)
    assert deep_files.find_deep_result() is None  # somebody else could have written it
