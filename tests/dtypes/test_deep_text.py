"""The page of a deep probe, its CSV and its progress, as literals."""

import csv

from dtypes.deep_kit import CELLS, make

from mpsbar.dtypes.deep_results import DeepCell, find_deep_changes
from mpsbar.dtypes.deep_text import (
    render_csv,
    render_deep,
    say_deep_headline,
    say_deep_progress,
)
from mpsbar.dtypes.table import TableStyle


def test_the_whole_page():
    assert render_deep(make(), TableStyle(), "/data/deep.json") == (
        "2 results are worse than torch itself expects: 1 wrong, 1 crashed\n"
        "1 result is better than torch's tests expect (perhaps not with other samples)\n"
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
    assert "Canceled: measured 2 of 8364" in cut
    assert "nothing to compare them with" in render_deep(make(device="cpu"), TableStyle())


def test_what_is_not_known_has_a_column():
    cells = (DeepCell("mm", "int8", "unknown", True), DeepCell("mm", "bool", "no_memory", True))
    page = render_deep(make(cells), TableStyle())
    assert "DTYPE  OUT OF MEMORY  NOT MEASURED  UNEXPECTED\n" in page
    assert "int8               –             1           –\n" in page


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


def test_csv_has_a_line_for_each():
    rows = list(csv.DictReader(render_csv(make()).splitlines()))
    assert len(rows) == len(CELLS)
    assert rows[3] == {
        "operation": "mm", "dtype": "float16", "state": "inaccurate", "expected": "works", "news": "worse",
        "error": "", "text": "largest error: 0.3",
    }  # fmt: skip


def test_progress_in_words():
    assert say_deep_progress(0, None, None) == "Probing… (importing torch and its samples)"
    assert say_deep_progress(42, 100, None) == "Probing… 42% (42 of 100)"
    assert say_deep_progress(42, 100, 12.2) == "Probing… 42% (42 of 100), about 12 s left"
