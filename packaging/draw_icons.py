"""Draws the menu bar's template images from icon.svg: python packaging/draw_icons.py [FOLDER]"""

import base64
import json
import re
import sys
from pathlib import Path

from chromium import read_page, require_chromium

RESOURCES = Path(__file__).parents[1] / "mpsbar/resources"
POINTS = 18
SCALES = (1, 2, 3)
STATES = {"ok": "icon", "warning": "icon-warning", "critical": "icon-critical"}

# Each picture through a canvas: exact to the pixel, whatever the smallest window may be.
_PAGE = """<!doctype html><meta charset="utf-8"><body><script>
const wanted = {wanted};
async function draw(address, size) {{
  const image = new Image(size, size);
  image.src = address;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  canvas.getContext("2d").drawImage(image, 0, 0, size, size);
  return canvas.toDataURL("image/png").split(",")[1];
}}
(async () => {{
  const drawn = {{}};
  for (const [name, address, size] of wanted) drawn[name] = await draw(address, size);
  document.body.textContent = "<<" + JSON.stringify(drawn) + ">>";
}})();
</script>"""


def build_svg(state: str, points: int = POINTS) -> str:
    """The one source in one of its states, in a size of its own."""
    source = (RESOURCES / "icon.svg").read_text(encoding="utf-8")
    head = f'<svg data-state="{state}" width="{points}" height="{points}" '
    return re.sub(r"<svg ", head, source, count=1)


def draw_icons(program: str) -> dict[str, bytes]:
    """The PNGs by file name."""
    wanted = []
    for state, stem in STATES.items():
        for scale in SCALES:
            size = POINTS * scale
            address = base64.b64encode(build_svg(state, size).encode()).decode()
            suffix = "" if scale == 1 else f"@{scale}x"
            wanted.append((f"{stem}{suffix}.png", f"data:image/svg+xml;base64,{address}", size))
    page = read_page(program, _PAGE.format(wanted=json.dumps(wanted)))
    found = re.search(r"&lt;&lt;(.*?)&gt;&gt;", page)
    if found is None:
        sys.exit("mpsbar: Chromium drew nothing")
    return {name: base64.b64decode(told) for name, told in json.loads(found[1]).items()}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else RESOURCES
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in draw_icons(require_chromium()).items():
        (folder / name).write_bytes(picture)
    print(f"drawn in {folder}")


if __name__ == "__main__":
    main()
