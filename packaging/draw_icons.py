"""Draws the menu bar's template images and the app's icon, all from icon.svg.

python packaging/draw_icons.py [FOLDER]
"""

import base64
import json
import re
import sys
from pathlib import Path

from chromium import read_page, require_chromium
from icns import PLANES, SIZES, build_icns

RESOURCES = Path(__file__).parents[1] / "resources"
POINTS = 18
SCALES = (1, 2, 3)
STATES = {"ok": "icon", "warning": "icon-warning", "critical": "icon-critical"}
APP_ICON = "mpsbar.icns"
# Apple's grid: a rounded square of 824 in 1024, with a soft shadow; on it the bar's hexagon.
_TILE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1024 1024"
width="{size}" height="{size}">
<defs>
<linearGradient id="ground" x1="0" y1="0" x2="0" y2="1">
<stop offset="0" stop-color="#ff9a3d"/><stop offset="1" stop-color="#d5334a"/></linearGradient>
<filter id="shadow" x="-10%" y="-10%" width="120%" height="125%">
<feDropShadow dx="0" dy="12" stdDeviation="12" flood-opacity="0.3"/></filter>
</defs>
<rect x="100" y="100" width="824" height="824" rx="186" fill="url(#ground)" filter="url(#shadow)"/>
<svg x="222" y="222" width="580" height="580" viewBox="0 0 18 18">{mark}</svg>
</svg>"""

# Each picture is drawn on a canvas: exact to the pixel, whatever the smallest window is.
_PAGE = """<!doctype html><meta charset="utf-8"><body><script>
const wanted = {wanted};
async function draw(address, size, pixels) {{
  const image = new Image(size, size);
  image.src = address;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0, size, size);
  if (!pixels) return canvas.toDataURL("image/png").split(",")[1];
  return btoa(String.fromCharCode(...context.getImageData(0, 0, size, size).data));
}}
(async () => {{
  const drawn = {{}};
  for (const [name, ...how] of wanted) drawn[name] = await draw(...how);
  document.body.textContent = "<<" + JSON.stringify(drawn) + ">>";
}})();
</script>"""


def build_svg(state: str, points: int = POINTS) -> str:
    """icon.svg in one of its states and one size."""
    source = (RESOURCES / "icon.svg").read_text(encoding="utf-8")
    head = f'<svg data-state="{state}" width="{points}" height="{points}" '
    return re.sub(r"<svg ", head, source, count=1)


def build_app_svg(size: int) -> str:
    """icon.svg in white on the tile of an app."""
    source = (RESOURCES / "icon.svg").read_text(encoding="utf-8")
    inside = re.sub(r"<!--.*?-->|</?svg[^>]*>|<style>.*?</style>", "", source, flags=re.DOTALL)
    shapes = re.sub(r'<use class="(?:warning|critical)"[^>]*/>', "", inside)
    return _TILE.format(size=size, mark=shapes.replace("#000", "#fff"))


def draw_icons(program: str) -> dict[str, bytes]:
    """The menu bar's images: PNGs by file name."""
    wanted = []
    for state, stem in STATES.items():
        for scale in SCALES:
            size = POINTS * scale
            suffix = "" if scale == 1 else f"@{scale}x"
            wanted.append((f"{stem}{suffix}.png", _address(build_svg(state, size)), size, False))
    return _draw(program, wanted)


def draw_app_icon(program: str) -> bytes:
    """The app's icon in all sizes, as an .icns file."""
    wanted = [(f"{size}", _address(build_app_svg(size)), size, False) for size in SIZES]
    small = [(f"pixels {n}", _address(build_app_svg(n)), n, True) for n in PLANES.values()]
    drawn = _draw(program, [*wanted, *small])
    pixels = {size: drawn[f"pixels {size}"] for size in PLANES.values()}
    return build_icns({size: drawn[f"{size}"] for size in SIZES}, pixels)


def _address(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _draw(program: str, wanted: list[tuple[str, str, int, bool]]) -> dict[str, bytes]:
    page = read_page(program, _PAGE.format(wanted=json.dumps(wanted)))
    found = re.search(r"&lt;&lt;(.*?)&gt;&gt;", page)
    if found is None:
        sys.exit("mpsbar: Chromium drew nothing")
    return {name: base64.b64decode(text) for name, text in json.loads(found[1]).items()}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else RESOURCES
    folder.mkdir(parents=True, exist_ok=True)
    program = require_chromium()
    for name, picture in draw_icons(program).items():
        (folder / name).write_bytes(picture)
    (folder / APP_ICON).write_bytes(draw_app_icon(program))
    print(f"drawn in {folder}")


if __name__ == "__main__":
    main()
