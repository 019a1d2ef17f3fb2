"""The committed templates are what icon.svg and the script draw, whatever Chromium is at hand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from png_kit import read_pixels

from mpsbar.storage.paths import resource

SCRIPTS = Path(__file__).parents[2] / "packaging"


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import chromium
    import draw_icons

    return chromium, draw_icons


def test_the_committed_pictures_are_drawn_from_the_source(scripts):
    chromium, draw_icons = scripts
    if chromium.find_chromium() is None:
        pytest.skip("no Chromium")
    drawn = draw_icons.draw_icons(chromium.require_chromium())
    assert set(drawn) == {path.name for path in draw_icons.RESOURCES.glob("*.png")}
    for name, data in drawn.items():
        pairs = zip(read_pixels(data), read_pixels(resource(name).read_bytes()), strict=True)
        apart = [abs(a[3] - b[3]) for row, kept in pairs for a, b in zip(row, kept, strict=True)]
        assert sum(apart) / len(apart) < 4, name  # of 255: another version may round its edges


def test_the_source_is_black_and_nothing_but_masks_is_white(scripts):
    text = resource("icon.svg").read_text()
    assert set(re.findall(r"#[0-9a-f]{3,6}\b", text)) <= {"#000", "#fff"}
    assert "#fff" not in re.sub(r"<mask.*?</mask>", "", text, flags=re.DOTALL)


def test_each_state_is_the_same_source_with_a_mark(scripts):
    _, draw_icons = scripts
    made = {state: draw_icons.build_svg(state) for state in draw_icons.STATES}
    assert len(set(made.values())) == 3
    assert len({svg.partition(">")[2] for svg in made.values()}) == 1


def test_without_chromium_one_sentence_says_so(tmp_path, scripts):
    if scripts[0]._MAC.exists():
        pytest.skip("Chrome is where macOS has its apps")
    env = {"PATH": str(tmp_path)}
    command = [sys.executable, SCRIPTS / "draw_icons.py", tmp_path / "out"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == (
        "mpsbar: drawing needs Chromium: apt-get install chromium, or Google Chrome\n"
    )
