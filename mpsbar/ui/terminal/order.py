"""The order of the table's rows: by a column, families together, and steady. Pure."""

from collections.abc import Callable, Sequence

from mpsbar.ui.columns import COLUMNS
from mpsbar.ui.process_table import TableRow

# How much larger a process must be than the one above to pass it: rows that swap places at every
# reading can neither be read nor clicked.
_MARGIN = 1.1
WORDS = [column.key for column in COLUMNS if column.number is None]
SORTS = ("", "HELD", "CACHED", "FOOTPRINT", "NAME")  # of the key that sorts by the next one
_Family = list[TableRow]
_Measure = Callable[[_Family], tuple[float, str]]


class Ordered:
    """What a table is sorted by, and how a person changes that."""

    def __init__(self) -> None:
        self.sort, self.descending = "", True

    def sort_by(self, name: str) -> None:
        """The same column once more reverses the order."""
        column = next(column for column in COLUMNS if column.key == name)
        is_word = column.number is None or name == "PID"
        self.descending = not self.descending if name == self.sort else not is_word
        self.sort = name
        self.forget_order()

    def sort_next(self) -> None:
        """Sort by the next of the main columns, and after the last in the order of the menu."""
        at = SORTS.index(self.sort) + 1 if self.sort in SORTS else 0
        self.sort = SORTS[at % len(SORTS)]
        self.descending = self.sort not in WORDS
        self.forget_order()

    def reverse_order(self) -> None:
        self.descending = not self.descending
        self.forget_order()

    def forget_order(self) -> None:
        """Sort exactly, without the margin that keeps rows from jumping."""
        raise NotImplementedError


def matches(row: TableRow, text: str) -> bool:
    """Whether a text column or the pid contains the text."""
    words = [row.cells.get(key, "") for key in (*WORDS, "PID")]
    return text.lower() in " ".join(words).lower()


def arrange(
    rows: Sequence[TableRow], sort: str, descending: bool, before: Sequence[str] = ()
) -> tuple[TableRow, ...]:
    """`before`: the keys in their last order; rows move only if they differ by more than the
    margin."""
    if not sort:
        return tuple(rows)
    families: list[_Family] = []
    for row in rows:
        if row.is_child and families:
            families[-1].append(row)
        else:
            families.append([row])
    measure = _measure_by(sort)
    places = {key: place for place, key in enumerate(before)}
    known = [family for family in families if family[0].key in places]
    known.sort(key=lambda family: places[family[0].key])
    new = [family for family in families if family[0].key not in places]
    order: list[_Family] = []
    for family in [*known, *sorted(new, key=measure, reverse=descending)]:
        at, value = len(order), measure(family)
        while at and _passes(value, measure(order[at - 1]), descending):
            at -= 1
        order.insert(at, family)
    return tuple(row for family in order for row in family)


def _measure_by(sort: str) -> _Measure:
    """The number of a column, or its text; an unknown number is the least."""

    def measure(family: _Family) -> tuple[float, str]:
        if sort in WORDS:
            return (0.0, family[0].cells.get(sort, "").lower())
        known = [v for row in family if (v := row.values.get(sort)) is not None]
        return (sum(known) if known else -1.0, "")

    return measure


def _passes(value: tuple[float, str], above: tuple[float, str], descending: bool) -> bool:
    if value[1] or above[1]:
        return value[1] > above[1] if descending else value[1] < above[1]
    if descending:
        return value[0] > max(above[0], 0) * _MARGIN and value[0] > above[0]
    return max(value[0], 0) * _MARGIN < above[0] or value[0] < 0 <= above[0]
