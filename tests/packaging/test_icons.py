"""The committed icons: sizes as their names claim, templates in black, states told apart by shape."""

from itertools import combinations

import pytest
from png_kit import read_pixels, read_size

from mpsbar.system.paths import resource

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
def test_the_states_are_distinguished_by_shape(suffix):
    drawn = {stem: alphas(f"{stem}{suffix}.png") for stem in STEMS}
    for first, other in combinations(STEMS, 2):
        pairs = zip(drawn[first], drawn[other], strict=True)
        changed = sum(abs(a - b) > 128 for a, b in pairs)
        assert changed > 0.05 * len(drawn[first]), (first, other)
    inked = {stem: sum(drawn[stem]) for stem in STEMS}
    assert inked["icon-critical"] > 1.5 * max(inked["icon"], inked["icon-warning"])
