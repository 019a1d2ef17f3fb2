"""Builds HTML from text that is not trusted: everything that is not Markup is escaped. Pure."""

import html
import unicodedata
from collections.abc import Iterable, Sequence

# Unicode categories of characters that can hide or reorder the text around them.
_INVISIBLE = frozenset(("Cc", "Cf", "Co", "Cs", "Cn"))


class Markup(str):
    """HTML that this module built."""

    __slots__ = ()


def text(words: object) -> Markup:
    """Escape anything that is not Markup."""
    if isinstance(words, Markup):
        return words
    plain = str(words)
    if not plain.isprintable():
        plain = "".join(_show(character) for character in plain)
    return Markup(html.escape(plain))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Build an element; `class_` means class, `aria_label` aria-label; None is left out."""
    words = "".join(_attribute(key, value) for key, value in attributes.items())
    return Markup(f"<{name}{words}>{''.join(map(text, children))}</{name}>")


def void(name: str, /, **attributes: object) -> Markup:
    """Build an element without content."""
    words = "".join(_attribute(key, value) for key, value in attributes.items())
    return Markup(f"<{name}{words}/>")  # SVG has no elements that are empty by name


def join(parts: Iterable[object], between: str = "") -> Markup:
    return Markup(between.join(text(part) for part in parts))


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(value)}"'


def _show(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _INVISIBLE:
        return character
    return "\N{REPLACEMENT CHARACTER}"


Cells = Sequence[object]


def build_table(title: str, headers: Sequence[str], rows: Sequence[Cells]) -> Markup:
    """Build a table; the first column names the row."""
    head = tag(
        "tr", *(tag("th", word, scope="col", role="columnheader") for word in headers), role="row"
    )
    body = [_row(headers, cells) for cells in rows]
    # The style turns narrow tables into cards; the roles keep them tables for a screen reader.
    table = tag(
        "table",
        tag("caption", title, class_="unseen"),
        tag("thead", head, role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
        class_="cards pair" if len(headers) == 2 else "cards",
        role="table",
    )
    return scrolling(table, title)


def build_heat_map(
    title: str, style: str, columns: Sequence[str], rows: Iterable[tuple[str, Iterable[Markup]]]
) -> Markup:
    """Build a table of a name and its `td` elements in each row."""
    headers = [tag("th", tag("span", column), scope="col") for column in columns]
    body = [tag("tr", tag("th", name, scope="row"), *spots) for name, spots in rows]
    table = tag(
        "table", tag("caption", title, class_="unseen"),
        tag("thead", tag("tr", tag("td", ""), *headers)), tag("tbody", *body), class_=style,
    )  # fmt: skip
    return scrolling(table, title)


def scrolling(table: Markup, label: str) -> Markup:
    """Build a box in which a wide table scrolls, also by the keyboard."""
    return tag("div", table, class_="scroll", tabindex="0", role="group", aria_label=label)


def _row(headers: Sequence[str], cells: Cells) -> Markup:
    first, *others = zip(headers, cells, strict=True)
    return tag(
        "tr",
        tag("th", first[1], scope="row", role="rowheader"),
        *(tag("td", cell, role="cell", data_label=word) for word, cell in others),
        role="row",
    )
