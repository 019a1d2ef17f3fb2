"""A made-up language: every letter of every text in `_()` becomes a look-alike that no text of ours has.

What is still in plain letters after that was never given to `_()`, or is a name, a number, a command.
"""

import re
import sys
import unicodedata
from io import BytesIO
from pathlib import Path
from types import ModuleType

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

ROOT = Path(__file__).parents[1]
LANGUAGE = "xx"
# What is filled in or marks up, and so stays: {name}, %(name)s, %s, [b], <b>.
_KEPT = re.compile(r"(\{[^{}]*\}|%\(\w+\)[a-z]|%[a-z%]|\[/?[a-z ]*\]|</?[a-z]+>)")
# A translation may write dates in another way, or without names, of which Python has English ones.
_DATE = re.compile(r"\{(\w+):[^{}]*%[aAbB][^{}]*\}")
# Mathematical Monospace: one cell each, no upper or lower case to change.
_LETTERS = {
    ord(letter): chr(start + number)
    for start, first in ((0x1D670, "A"), (0x1D68A, "a"))
    for number in range(26)
    for letter in [chr(ord(first) + number)]
}


def disguise(text: str) -> str:
    text = _DATE.sub(r"{\1:%m-%d %H:%M}", text)
    return "".join(
        part if _KEPT.fullmatch(part) else part.translate(_LETTERS) for part in _KEPT.split(text)
    )


def reveal(text: str) -> str:
    """The plain text again, for messages of failed tests."""
    return unicodedata.normalize("NFKC", text)


def is_disguised(text: str) -> bool:
    return any(letter in text for letter in _LETTERS.values())


def load_update_messages() -> ModuleType:
    """packaging/update_messages.py, which is a script."""
    sys.path.insert(0, str(ROOT / "packaging"))
    try:
        import update_messages
    finally:
        sys.path.remove(str(ROOT / "packaging"))
    return update_messages


def write_catalogue(resources: Path) -> None:
    """Into the resources of a copy of mpsbar."""
    catalogue = Catalog(locale="ko")  # any: it only says how many plural forms there are
    for message in load_update_messages().read_code():
        if isinstance(message.id, tuple):
            catalogue.add(message.id, (disguise(message.id[1]),))
        elif message.id:
            catalogue.add(message.id, disguise(message.id))
    file = BytesIO()
    write_mo(file, catalogue)
    path = resources / f"locale/{LANGUAGE}/LC_MESSAGES/mpsbar.mo"
    path.parent.mkdir(parents=True)
    path.write_bytes(file.getvalue())
