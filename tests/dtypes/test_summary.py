"""The dtype probe as people see it: whole pages as literals, the loudest line first."""

import json
import re
from dataclasses import replace

import pytest
from probe_samples import SPEEDS, make_probe

from mpsbar.core.dtype_results import Cell, Check, Progress, parse_record
from mpsbar.core.findings import Reason
from mpsbar.dtypes import table
from mpsbar.dtypes.headlines import find_headlines
from mpsbar.dtypes.preconditions import say_objection
from mpsbar.dtypes.summary import (
    build_dtypes,
    build_probe,
    build_rows,
    draw_progress,
    say_headline,
    say_progress,
)
from mpsbar.dtypes.table import TableStyle, render_probe
from mpsbar.dtypes.text import say_end, say_known_bug
from mpsbar.dtypes.verdicts import find_changes
from mpsbar.ui.text.cells import width

FELL_BACK = "The operator 'aten::cumsum' is not currently supported on the MPS backend and will fall back to run on the CPU."
BAD = make_probe(
    changed={
        "matmul/float16": ("inaccurate", None), "linear/float16": ("inaccurate", None),
        "sort/bfloat16": ("crashed", "SIGABRT"), "cumsum/int64": ("fallback", FELL_BACK),
        "matmul/int8": ("unsupported", 'RuntimeError: "addmm" not implemented'),
    },
    wrong={"adam": Check("adam", "wrong", "the parameter did not change")},
)  # fmt: skip
TERMINAL = TableStyle(with_signs=True, width=100)


@pytest.mark.parametrize(
    ("name", "probe", "look"),
    [
        ("terminal", BAD, TERMINAL),
        ("pipe", BAD, TableStyle()),
        ("expected", make_probe(), TERMINAL),
    ],
)
def test_the_whole_page(name, probe, look, check_golden):
    changes = find_changes(make_probe(torch="2.12.0"), probe) if probe is BAD else None
    page = render_probe(probe, look, "/data/probes/mps.json", changes)
    check_golden(f"probe-{name}.txt", page + "\n")


def test_the_columns_hold_with_wide_characters(monkeypatch):
    """Korean takes two cells a character; the speed begins in the same cell of every row."""
    korean = {"HERE": "실측", "GUIDES": "가이드", "OPERATIONS": "연산", "yes": "예", "no": "아니요"}
    monkeypatch.setattr(table, "_", lambda text: korean.get(text, text))
    lines = render_probe(make_probe(), TERMINAL).splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("DTYPE"))
    rows = lines[head : lines.index("", head)]
    assert len(rows) > 10
    assert "아니요" in "".join(rows)
    starts = {
        width(row[: re.search(r"(?<=  )(SPEED|[\d.]+×|–)(?!.*[×–])", row).start()]) for row in rows
    }
    assert len(starts) == 1


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


def test_a_silent_bug_is_the_loudest_line():
    """Before everything else, in the loudest colour, with its issue and where it is known."""
    lines = render_probe(BAD, TableStyle(with_signs=True, is_coloured=True)).splitlines()
    assert lines[0] == (
        "\x1b[31;1m✗ WRONG RESULTS without an error: an Adam step on a transposed parameter: the parameter did not "
        "change (pytorch #118115, affects torch up to 2.3 on macOS before 15)\x1b[0m"
    )
    assert lines[1].startswith("\x1b[31;1m✗ float16 gives wrong results")


def test_colour_is_never_alone():
    coloured = render_probe(BAD, TableStyle(with_signs=True, is_coloured=True, width=100))
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == render_probe(BAD, TERMINAL)


def test_in_a_pipe_there_are_words_only():
    page = render_probe(BAD, TableStyle())
    assert not set("●○◐✗✓∞\x1b") & set(page)
    assert page.count("Cannot convert a MPS Tensor to float64") == 1
    assert "float64 all operations: unsupported: TypeError" in page
    assert page.count("Trying to convert Float8") == 1
    assert "float8_e4m3fn, float8_e5m2 all but copy: unsupported" in page


def test_narrow_and_wide_terminals():
    narrow = render_probe(BAD, TableStyle(with_signs=True, width=80)).splitlines()
    assert max(len(line) for line in narrow if "pytorch" not in line) <= 80
    wide = render_probe(BAD, TableStyle(with_signs=True, width=250)).splitlines()
    assert any(
        line.startswith("int8") and line.endswith("unsupported in 1 of 9 (matmul)") for line in wide
    )


def test_on_the_cpu_nobody_is_quoted():
    page = render_probe(make_probe("cpu"), TERMINAL)
    assert "GUIDES" not in page
    assert "TORCH" not in page


def test_cut_short():
    page = render_probe(
        make_probe(ended="cancelled", changed={"*/int8": ("unknown", None)}), TERMINAL
    )
    assert "Cancelled: measured 264 of 273" in page
    assert "? not measured" in page
    page = render_probe(
        make_probe(ended="stopped", wrong={"unique": Check("unique", "refused", "x")}), TERMINAL
    )
    assert "Stopped early" in page
    assert "none of 21 known silent bugs found; 1 rejected by torch" in page


def lines_of(probe, last=None):
    return [headline.text for headline in find_headlines(probe, last)]


def test_the_page_says_first_where_guides_are_wrong():
    assert lines_of(make_probe()) == [
        "bfloat16 works here; guides say it does not",
        "float16, int64 and int32 work here in every operation tried; guides call them limited",
    ]
    assert lines_of(make_probe("cpu")) == ["Everything works as expected."]
    refused = {f"*/{dtype}": ("unsupported", "x") for dtype in ("bfloat16", "int64", "int32")}
    partly = {"sort/float16": ("fallback", "x")}
    lines = lines_of(make_probe(torch="2.2.2", system="14.1", changed=refused | partly))
    assert lines[-1] == "int64 and int32 are unsupported here; guides call them limited"
    gone = {"*/float32": ("unsupported", "x")}
    assert "float32 is unsupported here; guides call it supported" in lines_of(
        make_probe(changed=gone)
    )


def test_what_changed_since_the_last_probe():
    before = make_probe(
        torch="2.2.2", changed={"*/bfloat16": ("unsupported", "x")}, time=1.7e9 - 7200
    )
    assert lines_of(make_probe(), before)[-1] == (
        "Since the last probe (2 h ago): torch: 2.2.2 → 2.13.0; bfloat16: unsupported → supported; "
        "18 operations changed"
    )
    same = make_probe(time=1.7e9 - 60, torch="2.12.0")
    assert lines_of(make_probe(), same)[-1] == (
        "No operation changed since the last probe (60 s ago, torch 2.12.0)"
    )
    one = make_probe(changed={"sort/int8": ("fallback", "x"), "add/int8": ("fallback", "x")})
    two = make_probe(changed={"sort/int8": ("fallback", "x")})
    assert lines_of(two, one)[-1] == "Since the last probe (just now): 1 operation changed"


def test_torch_compile_has_a_line_of_its_own():
    plain = make_probe()
    assert "torch.compile" not in render_probe(plain, TERMINAL)
    states = {"float32": "works", "float16": "inaccurate", "bfloat16": "unsupported"}
    added = tuple(Cell("torch.compile", dtype, state, "x") for dtype, state in states.items())
    page = render_probe(replace(plain, cells=plain.cells + added), TableStyle())
    assert "torch.compile: float32 works, float16 wrong results, bfloat16 raises" in page
    assert "bfloat16       supported    unsupported ≠  yes    18 of 18 work" in page


def test_speeds_on_a_busy_computer_are_marked():
    quiet = render_probe(make_probe(), TERMINAL)
    assert "speed: relative to float32, median of matmul 1536×1536 on mps" in quiet
    assert "~2.0×" not in quiet
    busy = render_probe(make_probe(load=30.0), TERMINAL)
    assert "~2.0×" in busy
    assert "~ approximate: the computer was busy" in " ".join(busy.split())
    none = replace(SPEEDS[0], seconds={})
    assert "no speed was measured" in render_probe(make_probe(speeds=(none,)), TERMINAL)


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
    assert draw_progress(Progress(50, 100), 10) == "█████░░░░░ Probing… 50%"


def test_the_moment():
    busy = Reason("probe_gpu_busy", "warning", {"percent": 43.4}, 7)
    assert say_objection(busy, "train.py") == (
        "train.py is using 43% of the GPU: it and the probe would slow each other down"
    )
    assert "memory pressure is critical" in say_objection(
        Reason("probe_pressure", "critical"), None
    )


def test_json_is_the_whole_and_can_be_compared_with_later():
    record = json.loads(json.dumps(build_probe(BAD, find_changes(make_probe(), BAD))))
    assert parse_record(record) == BAD
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


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("long_matmul", "pytorch #193487, #177116, #195163, affects torch 2.7 to 2.13 on M1/M2"),
        ("rprop", "pytorch #118117, affects torch 2.2"), ("conv_batch", "pytorch #96225, affects all torch releases so far"),
        ("repeated_sum", "pytorch #178497, affects torch since 2.11"), ("no_such", ""),
    ],
)  # fmt: skip
def test_where_a_bug_is_known(check, words):
    assert say_known_bug(check) == words


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        ("no_python", "there is no Python at /venv/bin/python"), ("not_python", "/venv/bin/python can't be run as Python: why"),
        ("unsafe", "/venv/bin/python was not run: why"),
        ("no_torch", "/venv/bin/python has no torch; choose another with --python PATH"),
        ("broken_torch", "torch can't be imported in /venv/bin/python: why"),
        ("no_device", "torch 2.13.0 in /venv/bin/python has no usable mps: why"),
        ("crashed", "/venv/bin/python crashed before the first operation: why"),
        ("exited", "/venv/bin/python exited before the first operation: why"),
        ("hung", "/venv/bin/python did not reach the first operation in time"),
        ("stopped", "nothing could be measured in /venv/bin/python"),
    ],
)  # fmt: skip
def test_why_nothing_was_measured(ended, words):
    error = "why" if words.endswith("why") else None
    assert say_end(make_probe(ended=ended, error=error)) == words


def test_lines_are_wrapped_by_cells():
    """Of which a Korean letter takes two."""
    lines = table._wrap("연산 " * 60, TableStyle(width=64), 3)
    assert [width(line) for line in lines] == [59, 59, 56]
    assert lines[-1].endswith("연산 …")
    assert table._wrap("matmul softmax", TableStyle(width=64), 3) == ["matmul softmax"]
