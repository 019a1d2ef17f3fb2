"""Runs headless Chromium on a page: returns its text or its picture."""

import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# A window is higher than its page, by an amount that differs with the version: the rest is cut.
_FRAME = 300
_SECONDS = 180.0  # a cold start on a loaded machine
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--force-color-profile=srgb", "--virtual-time-budget=10000",
)  # fmt: skip


def find_chromium() -> str | None:
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    return found or (str(_MAC) if _MAC.exists() else None)


def require_chromium() -> str:
    program = find_chromium()
    if program is None:
        sys.exit("mpsbar: drawing needs Chromium: apt-get install chromium, or Google Chrome")
    return program


def read_page(program: str, html: str) -> str:
    """The page as it is after its scripts have run."""
    with tempfile.TemporaryDirectory() as folder:
        return _run(program, html, Path(folder), "--dump-dom").decode("utf-8")


def draw_page(program: str, html: str, size: tuple[int, int], scale: int) -> bytes:
    """A PNG of `size` points."""
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "picture.png"
        window = f"--window-size={size[0]},{size[1] + _FRAME}"
        factor = f"--force-device-scale-factor={scale}"
        _run(program, html, Path(folder), f"--screenshot={picture}", window, factor)
        return cut_rows(picture.read_bytes(), size[1] * scale)


def cut_rows(png: bytes, height: int) -> bytes:
    """The upper rows. A row of a PNG may depend on the one above it, never on one below."""
    chunks, place = {}, len(_SIGNATURE)
    while place < len(png):
        (length,), name = struct.unpack(">I", png[place : place + 4]), png[place + 4 : place + 8]
        chunks[name] = chunks.get(name, b"") + png[place + 8 : place + 8 + length]
        place += 12 + length
    head, rows = chunks[b"IHDR"], zlib.decompress(chunks[b"IDAT"])
    line = len(rows) // struct.unpack(">I", head[4:8])[0]
    cut = head[:4] + struct.pack(">I", height) + head[8:]
    body = zlib.compress(rows[: line * height], 9)
    parts = ((b"IHDR", cut), (b"IDAT", body), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(name, data) for name, data in parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _run(program: str, html: str, folder: Path, *options: str) -> bytes:
    page = folder / "page.html"
    page.write_text(html, encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [program, *_FLAGS, profile, *options, page.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    if done.returncode:
        sys.exit(f"mpsbar: {program} failed: {done.stderr[-500:].decode('utf-8', 'replace')}")
    return done.stdout
