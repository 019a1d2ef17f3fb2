"""The committed templates are what icon.svg and the script draw, whatever Chromium is at hand."""

import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from png_kit import read_pixels, read_size

from mpsbar.system.paths import resource

SCRIPTS = Path(__file__).parents[2] / "packaging"


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import chromium
    import draw_icons
    import icns

    return chromium, draw_icons, icns


def test_the_committed_pictures_are_drawn_from_the_source(scripts):
    chromium, draw_icons, _ = scripts
    if chromium.find_chromium() is None:
        pytest.skip("no Chromium")
    drawn = draw_icons.draw_icons(chromium.require_chromium())
    assert set(drawn) == {path.name for path in draw_icons.RESOURCES.glob("*.png")}
    for name, data in drawn.items():
        pairs = zip(read_pixels(data), read_pixels(resource(name).read_bytes()), strict=True)
        apart = [
            abs(a[3] - b[3])
            for row, committed in pairs
            for a, b in zip(row, committed, strict=True)
        ]
        assert sum(apart) / len(apart) < 4, name  # of 255: another version may round its edges


def test_the_source_is_black_and_nothing_but_masks_is_white(scripts):
    text = resource("icon.svg").read_text()
    assert set(re.findall(r"#[0-9a-f]{3,6}\b", text)) <= {"#000", "#fff"}
    assert "#fff" not in re.sub(r"<mask.*?</mask>", "", text, flags=re.DOTALL)


def test_each_state_is_the_same_source_with_a_mark(scripts):
    _, draw_icons, _ = scripts
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


class TestAppIcon:
    def read(self, icns):
        return icns.parse_icns(resource("mpsbar.icns").read_bytes())

    def test_it_has_every_size(self, scripts):
        icns = scripts[2]
        parts = self.read(icns)
        assert list(parts) == [*icns.PLANES, *icns.PICTURES]
        for kind, size in icns.PICTURES.items():
            assert read_size(parts[kind]) == (size, size)
        assert {16, 32, 64, 128, 256, 512, 1024} == set(icns.SIZES)

    def test_the_small_ones_are_the_same_picture(self, scripts):
        """32 pixels are in it twice: as planes and as a PNG."""
        icns = scripts[2]
        parts = self.read(icns)
        assert parts["ic05"][:4] == b"ARGB"
        pixels = icns.unpack_planes(parts["ic05"][4:], 32)
        drawn = b"".join(bytes(pixel) for row in read_pixels(parts["ic11"]) for pixel in row)
        assert pixels == drawn

    def test_white_on_a_tile_with_clear_corners(self, scripts):
        rows = read_pixels(self.read(scripts[2])["ic07"])
        assert rows[0][0][3] == rows[127][127][3] == 0
        assert rows[64][20][3] == 255
        red, green, blue, alpha = rows[64][64]  # the middle bar
        assert min(red, green, blue) > 240 and alpha == 255

    def test_the_committed_one_is_drawn_from_the_source(self, scripts):
        chromium, draw_icons, icns = scripts
        if chromium.find_chromium() is None:
            pytest.skip("no Chromium")
        drawn = icns.parse_icns(draw_icons.draw_app_icon(chromium.require_chromium()))
        pair = [read_pixels(data["ic07"]) for data in (drawn, self.read(icns))]
        apart = [
            abs(a - b)
            for row, committed in zip(*pair, strict=True)
            for pixel, other in zip(row, committed, strict=True)
            for a, b in zip(pixel, other, strict=True)
        ]
        assert sum(apart) / len(apart) < 4  # of 255: another version may round its edges

    @pytest.mark.parametrize(
        "data", [b"", b"icns", b"icns\0\0\0\x10ic07\0\0\0\x40", b"icns\0\0\0\x10ic07\0\0\0\0"]
    )
    def test_a_broken_one_is_refused(self, scripts, data):
        with pytest.raises((ValueError, struct.error)):
            scripts[2].parse_icns(data)

    @pytest.mark.parametrize(
        "plane", [b"", b"a", b"ab" * 300, b"a" * 400, b"aab" + b"c" * 131 + b"d", bytes(range(256))]
    )
    def test_packing_loses_nothing(self, scripts, plane):
        icns, size = scripts[2], 32
        plane = plane.ljust(size * size, b"x")[: size * size]
        rgba = bytes(v for value in plane for v in (value, 255 - value, 7, value ^ 5))
        assert icns.unpack_planes(icns._pack_planes(rgba), size) == rgba
