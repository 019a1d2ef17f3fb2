"""The page of the dtype probe, on a terminal and in a pipe, as literals."""

import re
from dataclasses import replace

import pytest
from probe_samples import BAD, SPEEDS, TERMINAL, make_probe

from mpsbar.core.dtype_results import Cell, Check
from mpsbar.dtypes import table
from mpsbar.dtypes.table import TableStyle, render_probe
from mpsbar.dtypes.verdicts import find_changes
from mpsbar.ui.text.cells import width


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
    assert "Canceled: measured 264 of 273" in page
    assert "? not measured" in page
    page = render_probe(
        make_probe(ended="stopped", wrong={"unique": Check("unique", "refused", "x")}), TERMINAL
    )
    assert "Stopped early" in page
    assert "none of 21 known silent bugs found; 1 rejected by torch" in page


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


def test_lines_are_wrapped_by_cells():
    """Of which a Korean letter takes two."""
    lines = table._wrap("연산 " * 60, TableStyle(width=64), 3)
    assert [width(line) for line in lines] == [59, 59, 56]
    assert lines[-1].endswith("연산 …")
    assert table._wrap("matmul softmax", TableStyle(width=64), 3) == ["matmul softmax"]
