"""ASCII for what a terminal or a pipe cannot take, so that "·" does not become "?".

An error handler of Python's encoders: a stream that has all characters never calls it. Mostly one
character for one, so that columns hold.
"""

import codecs
import io
import unicodedata

HANDLER = "mpsbar-ascii"
_STAND_INS = {
    "·": "-", "×": "x", "–": "-", "—": "-", "−": "-", "→": "->", "←": "<-", "↑": "^", "↓": "v",
    "✓": "+", "✗": "x", "≤": "<=", "≥": ">=", "≠": "!=", "∞": "inf", "µ": "u", "⏎": "Return",
    "⌘": "Cmd-", "‼": "!!", "“": '"', "”": '"', "‘": "'", "’": "'",
    "●": "*", "○": "o", "◐": "*", "■": "#", "⬢": "#", "▲": "^", "▼": "v", "▸": ">",
    "█": "#", "▉": "#", "▊": "#", "▋": "#", "▌": "=", "▍": "-", "▎": "-", "▏": ".",
    "▇": "#", "▆": "#", "▅": "=", "▄": "=", "▃": "-", "▂": "-", "▁": "_",
    "▓": "#", "▒": "=", "░": ".",
    "│": "|", "┃": "|", "║": "|", "─": "-", "━": "-", "═": "=", "└": "`", "┘": "'",
}  # fmt: skip
_BOX_DRAWING = range(0x2500, 0x2580)
_BRAILLE = range(0x2800, 0x2900)  # of textual's charts
_BLOCKS = range(0x2580, 0x25A0)


def use_plain_characters(stream: object) -> None:
    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error(HANDLER, _replace)
        stream.reconfigure(errors=HANDLER)


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object
    replaced = [_find(text, place) for place in range(error.start, error.end)]
    return "".join(replaced), error.end


def _find(text: str, place: int) -> str:
    character = text[place]
    if character == "…":
        # In a cell that was cut off it takes one column; in a sentence it may take three.
        after = text[place + 1 : place + 2]  # an escape is that of a colour, at the end of a cell
        is_cut_off = place > 0 and text[place - 1] != " " and after in (" ", "\x1b")
        return "~" if is_cut_off else "..."
    if stand_in := _STAND_INS.get(character):
        return stand_in
    number = ord(character)
    if number in _BOX_DRAWING:
        return "+"
    if number in _BLOCKS:
        return "#"
    if number in _BRAILLE:
        return ":"
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return plain or "?"  # a name in Hangul has no other
