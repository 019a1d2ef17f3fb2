"""A PNG as rows of pixels, read by hand: 8 bits, colours with or without alpha, not interlaced."""

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {2: 3, 4: 2, 6: 4}  # colour type -> bytes of a pixel


def read_size(data):
    assert data[:8] == SIGNATURE
    assert data[12:16] == b"IHDR"
    return struct.unpack(">II", data[16:24])


def read_pixels(data):
    """[y][x] -> the bytes of a pixel."""
    (width, height), chunks = read_size(data), dict(_chunks(data))
    depth, colour, _, _, interlaced = chunks[b"IHDR"][8:13]
    assert (depth, interlaced) == (8, 0)
    step = _CHANNELS[colour]
    raw, line, rows = zlib.decompress(chunks[b"IDAT"]), width * step + 1, []
    before = bytes(width * step)
    for y in range(height):
        before = _unfilter(raw[y * line], raw[y * line + 1 : (y + 1) * line], before, step)
        rows.append([tuple(before[x * step : (x + 1) * step]) for x in range(width)])
    return rows


def _chunks(data):
    found, place = {}, 8
    while place < len(data):
        (length,), name = struct.unpack(">I", data[place : place + 4]), data[place + 4 : place + 8]
        found[name] = found.get(name, b"") + data[place + 8 : place + 8 + length]
        place += 12 + length
    return found.items()


def _unfilter(kind, line, above, step):
    """PNG specification, section 9: None, Sub, Up, Average, Paeth."""
    out = bytearray(len(line))
    for i, value in enumerate(line):
        a = out[i - step] if i >= step else 0
        b, c = above[i], above[i - step] if i >= step else 0
        near = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
        out[i] = (value + (0, a, b, (a + b) // 2, near)[kind]) & 255
    return bytes(out)
