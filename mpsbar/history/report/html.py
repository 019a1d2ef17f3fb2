"""HTML from text that is not trusted: whatever is not Markup is escaped; tables. Pure."""

import html
import unicodedata
from collections.abc import Iterable, Sequence

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


Cells = Sequence[object]


def build_table(title: str, heads: Sequence[str], rows: Sequence[Cells]) -> Markup:
    """The first column names the row."""
    head = tag(
        "tr", *(tag("th", word, scope="col", role="columnheader") for word in heads), role="row"
    )
    body = [_row(heads, cells) for cells in rows]
    # As cards it is no table to a browser, unless it is told so.
    table = tag(
        "table",
        tag("caption", title, class_="unseen"),
        tag("thead", head, role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
        class_="cards pair" if len(heads) == 2 else "cards",
        role="table",
    )
    return tag("div", table, class_="scroll", tabindex="0", role="group", aria_label=title)


def _row(heads: Sequence[str], cells: Cells) -> Markup:
    first, *others = zip(heads, cells, strict=True)
    return tag(
        "tr",
        tag("th", first[1], scope="row", role="rowheader"),
        *(tag("td", cell, role="cell", data_label=word) for word, cell in others),
        role="row",
    )
