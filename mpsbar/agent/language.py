"""The texts of %mpsbar and of mpsbar.compare() in the language of the person who reads them.

Only those: what the agent prints to stderr, records or sends is English. Nothing is imported or
read before the first text is shown. The environment alone decides: to ask macOS for its languages
would load a framework of its own into somebody's process. Where the whole of mpsbar is imported, in
its own processes and by mpsbar.snapshot(), mpsbar/language decides, which does ask macOS.
"""

import os
import sys
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from gettext import NullTranslations

_ENGLISH = ("en", "C", "POSIX")
# ko, ko_KR.UTF-8, zh-Hant-TW; nothing else becomes part of a path.
_CODE = r"([A-Za-z]+(?:[_-][A-Za-z0-9]+)*)(?:[.@].*)?"
_FILE = os.path.join("LC_MESSAGES", "mpsbar.mo")

_translations: "Optional[NullTranslations]" = None  # None: no text was shown yet


def list_wanted(environment: "Mapping[str, str]") -> "list[str]":
    """Lists the languages that the environment asks for, best first; none where it says nothing."""
    override = environment.get("MPSBAR_LANG")
    if override:
        return override.split(":")
    locale = next(filter(None, map(environment.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    languages = environment.get("LANGUAGE", "")
    # As for every other program: a list of languages does not count in the C locale.
    if languages and locale.partition(".")[0] not in ("C", "POSIX"):
        return [*languages.split(":"), locale]
    return [locale] if locale else []


def find_catalogue(wanted: "Sequence[str]", folder: str) -> Optional[str]:
    """Returns the .mo file of the first language that we have; None stands for English."""
    import re

    for language in wanted:
        match = re.fullmatch(_CODE, language)
        parts = match[1].replace("-", "_").split("_") if match else []
        if parts and parts[0] in _ENGLISH:
            return None
        for length in range(len(parts), 0, -1):
            path = os.path.join(folder, "_".join(parts[:length]), _FILE)
            if os.path.isfile(path):
                return path
    return None


def find_locale_folder() -> str:
    """Finds the translations: in a copied agent inside it; else in mpsbar's package (a wheel, the
    app), or beside that.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    package = os.path.dirname(here)
    copied, inside = os.path.join(here, "locale"), os.path.join(package, "resources", "locale")
    if os.path.isdir(copied):
        return copied
    beside = os.path.join(os.path.dirname(package), "resources", "locale")
    return inside if os.path.isdir(inside) else beside


def load(wanted: "Sequence[str]", encoding: str) -> "NullTranslations":
    """Loads the texts of the first language that we have and that can be written in `encoding`."""
    import gettext

    path = find_catalogue(wanted, find_locale_folder())
    if path is not None:
        try:
            with open(path, "rb") as file:
                texts = gettext.GNUTranslations(file)
            # Better English than a question mark for each letter.
            texts.gettext("unknown").encode(encoding)
        except Exception:  # noqa: BLE001, S110 - unreadable, or damaged in one of many ways
            pass
        else:
            return texts
    return gettext.NullTranslations()


def mark(text: str) -> str:
    """Returns the text itself; `_()` translates it where it is shown."""
    return text


def _(text: str) -> str:
    """Returns the text in the language that was chosen."""
    return get_translations().gettext(text)


def ngettext(singular: str, plural: str, count: int) -> str:
    """Returns the text for this count: English has two, Korean one, others more."""
    return get_translations().ngettext(singular, plural, count)


def get_translations() -> "NullTranslations":
    """Returns the texts of the language that was chosen, now if none was yet."""
    global _translations  # noqa: PLW0603 - the language of the process
    if _translations is None:
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        _translations = load(list_wanted(os.environ), encoding)
    return _translations


def set_translations(translations: "NullTranslations") -> None:
    """Makes these the language of all texts in this process."""
    global _translations  # noqa: PLW0603 - the language of the process
    _translations = translations


def measure(text: str) -> int:
    """Returns the cells that a text takes in a terminal: two for a Korean letter."""
    if text.isascii():
        return len(text)
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def pad(text: str, cells: int, to_right: bool = False) -> str:
    space = " " * (cells - measure(text))
    return space + text if to_right else text + space
