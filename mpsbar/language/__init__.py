"""The language of every text a person reads: `_()` and `ngettext()`.

It is chosen once, before any text is: $MPSBAR_LANG, else the locale of the environment, else, on a
Mac where the Finder or launchd gives none, the system's languages. The texts in the code are the
English ones; those of other languages are in resources/locale (`make messages`). What a notebook
shows is translated in the user's process by agent/language.py, which has the translations here too.

Not for what programs read: JSON, metrics, the wire, settings and log files are the same everywhere.
"""

import gettext
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mpsbar.agent.language import (
    _,
    get_translations,
    list_wanted,
    load,
    mark,
    ngettext,
    set_translations,
)

__all__ = ["_", "english", "get_code", "mark", "ngettext"]


def _load() -> gettext.NullTranslations:
    wanted = list_wanted(os.environ)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if not wanted and sys.platform == "darwin":
        from mpsbar.language.macos import read_preferred_languages

        wanted, encoding = read_preferred_languages(), "utf-8"  # an app writes into windows
    return load(wanted, encoding)


set_translations(_load())


def get_code() -> str:
    """Returns the code of the language that was chosen, as in HTML: "en", "ko", "zh-Hant"."""
    return get_translations().info().get("language", "en").replace("_", "-")


@contextmanager
def english() -> Iterator[None]:
    """Makes texts English in all threads meanwhile, for sentences that programs read."""
    before = get_translations()
    set_translations(gettext.NullTranslations())
    try:
        yield
    finally:
        set_translations(before)
