"""The order of the table's rows: by a column, families together, changing seldom. Pure."""

from collections.abc import Callable, Sequence

from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Worker
from mpsbar.ui.columns import COLUMNS
from mpsbar.ui.process_table import TableRow

# How much larger a process must be than the one above to pass it: rows that swap places at every
# reading can neither be read nor clicked.
_MARGIN = 1.1
WORDS = [column.key for column in COLUMNS if column.number is None]
# What the key that sorts by the next one goes through: the order of the menu, sizes, words.
SORTS = ("", *sorted((c.key for c in COLUMNS if c.is_main), key=WORDS.__contains__))
# Steps for each row that it takes to keep an order steady. Where thousands of rows change places it
# would take all pairs of them, and there is nothing to keep steady: they are sorted exactly.
_MAX_STEPS = 50
_RowGroup = list[TableRow]
_SortKey = tuple[float, str]
_Measure = Callable[[_RowGroup], _SortKey]


class TableOrder:
    """The rows of a table: which is selected, what they are sorted by and must contain."""

    def __init__(self) -> None:
        self.rows: tuple[TableRow, ...] = ()  # in order, without those that the filter hides
        self.selected = ""  # the key of a row
        self.filter = ""
        self.sort, self.descending = "", True

    @property
    def row(self) -> TableRow | None:
        return next((row for row in self.rows if row.key == self.selected), None)

    @property
    def process(self) -> Worker | Process | None:
        """The selected one."""
        return None if self.row is None else self.row.process

    def set_filter(self, text: str) -> None:
        self.filter = text
        self.arrange()

    def sort_by(self, name: str) -> None:
        """Sorts by a column; called again for the same one, it reverses the order."""
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

    def arrange(self) -> None:
        """Put the rows in order."""
        raise NotImplementedError

    def forget_order(self) -> None:
        """Sort exactly, without the margin that keeps rows from jumping."""
        raise NotImplementedError


def matches(row: TableRow, text: str) -> bool:
    """Returns whether a text column or the pid contains the text."""
    words = [row.cells.get(key, "") for key in (*WORDS, "PID")]
    return text.lower() in " ".join(words).lower()


def arrange(
    rows: Sequence[TableRow], sort: str, descending: bool, before: Sequence[str] = ()
) -> tuple[TableRow, ...]:
    """`before`: the keys in their last order; rows move only if they differ by more than the
    margin."""
    if not sort:
        return tuple(rows)
    families: list[_RowGroup] = []
    for row in rows:
        if row.is_child and families:
            families[-1].append(row)
        else:
            families.append([row])
    measure = _measure_by(sort)
    measured = [(measure(family), family) for family in families]
    positions = {key: position for position, key in enumerate(before)}
    known = [(value, family) for value, family in measured if family[0].key in positions]
    known.sort(key=lambda pair: positions[pair[1][0].key])
    new = [(value, family) for value, family in measured if family[0].key not in positions]
    new.sort(key=_by_value, reverse=descending)
    order: list[tuple[_SortKey, _RowGroup]] = []
    left = _MAX_STEPS * len(measured)
    for value, family in [*known, *new]:
        at = len(order)
        while at and left and _passes(value, order[at - 1][0], descending):
            at, left = at - 1, left - 1
        if not left:
            order = sorted(measured, key=_by_value, reverse=descending)
            break
        order.insert(at, (value, family))
    return tuple(row for _value, family in order for row in family)


def _by_value(measured: tuple[_SortKey, _RowGroup]) -> _SortKey:
    return measured[0]


def _measure_by(sort: str) -> _Measure:
    """Returns a function for the number of a column, or its text; an unknown number is the
    least."""

    def measure(family: _RowGroup) -> _SortKey:
        if sort in WORDS:
            return (0.0, family[0].cells.get(sort, "").lower())
        known = [v for row in family if (v := row.values.get(sort)) is not None]
        return (sum(known) if known else -1.0, "")

    return measure


def _passes(value: _SortKey, above: _SortKey, descending: bool) -> bool:
    if value[1] or above[1]:
        return value[1] > above[1] if descending else value[1] < above[1]
    if descending:
        return value[0] > max(above[0], 0) * _MARGIN and value[0] > above[0]
    return max(value[0], 0) * _MARGIN < above[0] or value[0] < 0 <= above[0]
