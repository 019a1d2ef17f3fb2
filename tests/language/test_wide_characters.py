"""In Korean, whose letters take two cells: columns of `status`, `top` and the menu stay in line."""

import json
import os
import re
import subprocess
import sys

import pytest
from wcwidth import wcswidth
from worker_kit import ROOT

CODE = """
import json
from ui.text.scene_kit import SCENE
from ui.menu_kit import APP
from mpsbar.ui.menu import build_menu
from mpsbar.ui.status_table import render_table
from ui.fake_monitor import FakeMonitor
from ui.terminal.top_kit import build_series
from ui.terminal_kit import play

shown = {"status": render_table(SCENE), "menu": str(build_menu(SCENE, APP))}
for width, height in ((80, 24), (160, 50)):
    async def look(p):
        shown[f"top {width}"] = p.screen()
        await p.press("enter")
        shown[f"detail {width}"] = p.screen()
    play(FakeMonitor(list(build_series())[-1]), look, (width, height))
print(json.dumps(shown))
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("korean")
    places = {f"MPSBAR_{name}_DIR": str(folder) for name in ("CONFIG", "DATA", "LOG", "RUN")}
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, "-B", "-c", CODE], cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=500,
        env={**os.environ, **places, "PYTHONPATH": paths, "PYTHONUTF8": "1", "MPSBAR_LANG": "ko"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def has_korean(text):
    return re.search("[가-힣]", text) is not None


def find_place(line, pattern, group=0):
    """The cells before and up to the end of the first match."""
    match = re.search(pattern, line)
    assert match, line
    return wcswidth(line[: match.start(group)]), wcswidth(line[: match.end(group)])


def test_the_columns_of_status(shown):
    head, *rows = shown["status"].splitlines()
    assert has_korean(head)
    rows = [row for row in rows if re.match(r" *\d+ ", row)]
    assert len(rows) > 8
    words = re.findall(r"\S+", head)
    device_begins = find_place(head, words[2])[0]
    held_ends = find_place(head, words[3])[1]
    for row in rows:
        assert find_place(row, r" (mps|mlx|cpu|–|\?) +", 1)[0] == device_begins, row
        assert find_place(row, r" (mps|mlx|cpu|–|\?) +(\S+ [kMG]?B|\?)(?=  )", 2)[1] == held_ends, (
            row
        )


def test_the_columns_of_the_menu(shown):
    rows = [line for line in shown["menu"].splitlines() if re.search(r" (mps|mlx|cpu) +\S", line)]
    assert len(rows) > 3
    assert any(has_korean(row) for row in rows)
    ends = {find_place(row, r" (mps|mlx|cpu) +(\S+ [kMG]?B|\?)(?=  | +▸|$)", 2)[1] for row in rows}
    assert len(ends) == 1


@pytest.mark.parametrize("name", ["top 80", "top 160", "detail 80", "detail 160"])
def test_the_boxes_of_top_are_closed_in_line(shown, name):
    """A line that were a cell too long or too short would move its right border."""
    width = int(name.split()[1])
    lines = shown[name].splitlines()
    assert has_korean(shown[name])
    assert all(wcswidth(line) <= width for line in lines)
    closed = [line for line in lines if line.endswith(("│", "╮", "╯", "┐", "┘"))]
    assert len(closed) > len(lines) // 2
    assert {wcswidth(line) for line in closed} == {width}
