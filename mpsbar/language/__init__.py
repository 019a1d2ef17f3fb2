"""The language of every text a person reads: `_()` and `ngettext()`.

It is chosen once, before any text is: $MPSBAR_LANG, else the locale of the environment, else, on a
Mac where the Finder or launchd gives none, the system's languages. The texts in the code are the
English ones; those of other languages are in resources/locale (`make messages`).

Not for what programs read: JSON, metrics, the wire, settings and log files are the same everywhere.
"""

import gettext
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_ENGLISH = ("en", "C", "POSIX")
# ko, ko_KR.UTF-8, zh-Hant-TW; nothing else becomes part of a path.
_CODE = re.compile(r"([A-Za-z]+(?:[_-][A-Za-z0-9]+)*)(?:[.@].*)?")


def list_wanted(environment: Mapping[str, str]) -> list[str]:
    """The languages that the environment asks for, best first; none where it says nothing."""
    if override := environment.get("MPSBAR_LANG"):
        return override.split(":")
    locale = next(filter(None, map(environment.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    languages = environment.get("LANGUAGE", "")
    # As for every other program: a list of languages does not count in the C locale.
    if languages and locale.partition(".")[0] not in ("C", "POSIX"):
        return [*languages.split(":"), locale]
    return [locale] if locale else []


def find_catalogue(wanted: Sequence[str], folder: Path) -> Path | None:
    """The .mo file of the first language that we have; None stands for English."""
    for language in wanted:
        match = _CODE.fullmatch(language)
        parts = match[1].replace("-", "_").split("_") if match else []
        if parts and parts[0] in _ENGLISH:
            return None
        for length in range(len(parts), 0, -1):
            path = folder / "_".join(parts[:length]) / "LC_MESSAGES/mpsbar.mo"
            if path.is_file():
                return path
    return None


def _find_locale_folder() -> Path:
    """Inside the package in a wheel and in the app, beside it in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "resources"
    return (inside if inside.is_dir() else package.parent / "resources") / "locale"


def _load() -> gettext.NullTranslations:
    wanted = list_wanted(os.environ)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if not wanted and sys.platform == "darwin":
        from mpsbar.language.macos import read_preferred_languages

        wanted, encoding = read_preferred_languages(), "utf-8"  # an app writes into windows
    path = find_catalogue(wanted, _find_locale_folder())
    if path is not None:
        with suppress(Exception):  # unreadable, or damaged in one of many ways: English
            texts = gettext.GNUTranslations(io.BytesIO(path.read_bytes()))
            # Better English than a question mark for each letter.
            texts.gettext("unknown").encode(encoding)
            return texts
    return gettext.NullTranslations()


def mark(text: str) -> str:
    """The text itself; `_()` translates it where it is shown: programs read it in English."""
    return text


_translations = _load()


def _(text: str) -> str:
    """The text in the language that was chosen."""
    return _translations.gettext(text)


def ngettext(singular: str, plural: str, count: int) -> str:
    """The text for this count: English has two, Korean one, others more."""
    return _translations.ngettext(singular, plural, count)


def get_code() -> str:
    """The language that was chosen, as HTML names it: "en", "ko", "zh-Hant"."""
    return _translations.info().get("language", "en").replace("_", "-")


@contextmanager
def english() -> Iterator[None]:
    """Meanwhile, in all threads, texts are English: sentences that programs read."""
    global _translations  # noqa: PLW0603 - the language of the process
    before = _translations
    _translations = gettext.NullTranslations()
    try:
        yield
    finally:
        _translations = before
