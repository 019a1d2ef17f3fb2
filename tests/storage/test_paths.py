"""The files that come along: sizes as their names claim, templates in black, and in every wheel."""

import shutil
import subprocess
import sys
import zipfile
from itertools import combinations
from pathlib import Path

import pytest
from png_kit import read_pixels, read_size

from mpsbar.storage.paths import resource

ROOT = Path(__file__).parents[2]
STEMS = ("icon", "icon-warning", "icon-critical")
SCALES = {"": 1, "@2x": 2, "@3x": 3}


def alphas(name):
    return [pixel[3] for row in read_pixels(resource(name).read_bytes()) for pixel in row]


@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("suffix", SCALES)
def test_each_template_has_its_size_and_only_black(stem, suffix):
    data = resource(f"{stem}{suffix}.png").read_bytes()
    size = 18 * SCALES[suffix]
    assert read_size(data) == (size, size)
    assert len(data) < 4096
    pixels = [pixel for row in read_pixels(data) for pixel in row]
    assert {pixel[:3] for pixel in pixels} == {(0, 0, 0)}
    assert {0, 255} <= {pixel[3] for pixel in pixels}
    edge = [row[x][3] for row in read_pixels(data) for x in (0, size - 1)]
    assert max(edge) == 0  # the bar adds no room of its own


@pytest.mark.parametrize("suffix", SCALES)
def test_the_states_are_told_apart_by_shape(suffix):
    drawn = {stem: alphas(f"{stem}{suffix}.png") for stem in STEMS}
    for one, other in combinations(STEMS, 2):
        pairs = zip(drawn[one], drawn[other], strict=True)
        changed = sum(abs(a - b) > 128 for a, b in pairs)
        assert changed > 0.05 * len(drawn[one]), (one, other)
    inked = {stem: sum(drawn[stem]) for stem in STEMS}
    assert inked["icon-critical"] > 1.5 * max(inked["icon"], inked["icon-warning"])


def test_what_does_not_come_along_is_named():
    with pytest.raises(FileNotFoundError, match=r"none\.png"):
        resource("none.png")


def test_a_wheel_brings_them(tmp_path):
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "mpsbar", source / "mpsbar", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "-w", tmp_path, source], check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    program = (
        "from mpsbar.storage.paths import resource as r; print(r('icon@2x.png'), r('icon.svg'))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=True, timeout=60, cwd="/",
        env={"PYTHONPATH": str(tmp_path / "installed")},
    ).stdout  # fmt: skip
    assert told.split()[0] == str(tmp_path / "installed/mpsbar/resources/icon@2x.png")
