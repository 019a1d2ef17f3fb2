"""HTML from text that is not trusted: whatever is not Markup is escaped. Pure."""

import html
import unicodedata
from collections.abc import Iterable

# Characters that make what follows them appear elsewhere, or not at all.
_TRICKS = frozenset(("Cc", "Cf", "Co", "Cs", "Cn"))


class Markup(str):
    """HTML that we made."""

    __slots__ = ()


def text(words: object) -> Markup:
    """Anything as text, on which nothing of a page can hang."""
    if isinstance(words, Markup):
        return words
    plain = str(words)
    if not plain.isprintable():
        plain = "".join(_show(character) for character in plain)
    return Markup(html.escape(plain))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """`class_` and `for_` lose their line, `aria_label` becomes aria-label; None is left out."""
    words = "".join(_attribute(key, value) for key, value in attributes.items())
    return Markup(f"<{name}{words}>{''.join(map(text, children))}</{name}>")


def void(name: str, /, **attributes: object) -> Markup:
    """A tag that nothing stands in."""
    words = "".join(_attribute(key, value) for key, value in attributes.items())
    return Markup(f"<{name}{words}/>")  # in SVG too, where nothing is void by its name


def join(parts: Iterable[object], between: str = "") -> Markup:
    return Markup(between.join(text(part) for part in parts))


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(value)}"'


def _show(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _TRICKS:
        return character
    return "\N{REPLACEMENT CHARACTER}"
