"""Tables of the report, which become cards where there is no room for columns. Pure."""

from collections.abc import Sequence

from mpsbar.views.html import Markup, tag

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
