"""Writes and reads Apple's .icns format: "icns", the length of all, then the pictures.

Each is its type, its length (these eight bytes included) and its data. The large ones are PNGs.
Those of 16 and 32 pixels are "ARGB" and the four planes, each packed, as iconutil writes them: as
PNGs some versions of macOS do not show them in an app. The types are those of iconutil; "@2x" is
the same size in points with twice the pixels.
"""

import struct
from collections.abc import Iterator

PLANES = {"ic04": 16, "ic05": 32}
PICTURES = {
    "ic11": 32,  # 16 @2x
    "ic12": 64,  # 32 @2x
    "ic07": 128,
    "ic13": 256,  # 128 @2x
    "ic08": 256,
    "ic14": 512,  # 256 @2x
    "ic09": 512,
    "ic10": 1024,  # 512 @2x
}
SIZES = tuple(sorted({*PLANES.values(), *PICTURES.values()}))


def build_icns(pictures: dict[int, bytes], pixels: dict[int, bytes]) -> bytes:
    """`pictures` are PNGs by their size, `pixels` are RGBA, row by row."""
    small = {kind: b"ARGB" + _pack_planes(pixels[size]) for kind, size in PLANES.items()}
    large = {kind: pictures[size] for kind, size in PICTURES.items()}
    body = b"".join(_head(kind, len(data)) + data for kind, data in {**small, **large}.items())
    return _head("icns", len(body)) + body


def parse_icns(data: bytes) -> dict[str, bytes]:
    """The data of each picture by type; ValueError if it is no .icns file."""
    if data[:4] != b"icns" or struct.unpack(">I", data[4:8])[0] != len(data):
        raise ValueError("not an .icns file, or not whole")
    return dict(_chunks(data))


def unpack_planes(data: bytes, size: int) -> bytes:
    """RGBA pixels from the data that follows "ARGB"."""
    planes = bytearray()
    place = 0
    while place < len(data):
        count = data[place]
        if count < 0x80:
            planes += data[place + 1 : place + 2 + count]
            place += 2 + count
        else:
            planes += data[place + 1 : place + 2] * (count - 125)
            place += 2
    area = size * size
    if len(planes) != 4 * area:
        raise ValueError(f"{len(planes)} bytes for {size} by {size} pixels")
    alpha, red, green, blue = (planes[i * area : (i + 1) * area] for i in range(4))
    return bytes(value for pixel in zip(red, green, blue, alpha, strict=True) for value in pixel)


def _chunks(data: bytes) -> Iterator[tuple[str, bytes]]:
    place = 8
    while place < len(data):
        length = struct.unpack(">I", data[place + 4 : place + 8])[0]
        if length < 8 or place + length > len(data):
            raise ValueError(f"a picture reaches beyond the end, at {place}")
        yield data[place : place + 4].decode("ascii"), data[place + 8 : place + length]
        place += length


def _head(kind: str, length: int) -> bytes:
    return kind.encode("ascii") + struct.pack(">I", length + 8)


def _pack_planes(rgba: bytes) -> bytes:
    return b"".join(_pack(rgba[channel::4]) for channel in (3, 0, 1, 2))


def _pack(plane: bytes) -> bytes:
    """n < 128: the next n + 1 bytes as they are; else the next byte n - 125 times, 3 to 130."""
    packed, plain, place = bytearray(), bytearray(), 0
    while place < len(plane):
        run = 1
        while run < 130 and plane[place + run : place + run + 1] == plane[place : place + 1]:
            run += 1
        if run >= 3:
            packed += _plain(plain) + bytes((run + 125, plane[place]))
            plain.clear()
        else:
            plain += plane[place : place + run]
        place += run
    return bytes(packed + _plain(plain))


def _plain(data: bytearray) -> bytes:
    parts = (data[at : at + 128] for at in range(0, len(data), 128))
    return b"".join(bytes((len(part) - 1,)) + part for part in parts)
