"""The order of a terminal's table: as asked, families together, and without jumping. Pure."""

from collections.abc import Callable, Sequence

from mpsbar.ui.columns import COLUMNS
from mpsbar.ui.terminal.table_rows import Entry

# How much larger a process must be than the one above to pass it: rows that swap places at every
# look cannot be read, let alone be clicked.
_MARGIN = 1.1
_WORDS = [column.key for column in COLUMNS if column.number is None]


def arrange(
    entries: Sequence[Entry], sort: str, descending: bool, before: Sequence[str] = ()
) -> tuple[Entry, ...]:
    """Families stay together. `before`: the keys as they stood, and change place only by much."""
    if not sort:
        return tuple(entries)
    families = _families(entries)
    measure = _measure(sort)
    places = {key: place for place, key in enumerate(before)}
    known = [family for family in families if family[0].key in places]
    known.sort(key=lambda family: places[family[0].key])
    new = [family for family in families if family[0].key not in places]
    order: list[list[Entry]] = []
    for family in [*known, *sorted(new, key=measure, reverse=descending)]:
        _insert(order, family, measure, descending)
    return tuple(entry for family in order for entry in family)


def _families(entries: Sequence[Entry]) -> list[list[Entry]]:
    families: list[list[Entry]] = []
    for entry in entries:
        if entry.is_child and families:
            families[-1].append(entry)
        else:
            families.append([entry])
    return families


_Measure = Callable[[list[Entry]], tuple[float, str]]


def _measure(sort: str) -> _Measure:
    """A number, or a word where the column has words; who has none is least."""

    def measure(family: list[Entry]) -> tuple[float, str]:
        if sort in _WORDS:
            return (0.0, family[0].cells.get(sort, "").lower())
        known = [v for entry in family if (v := entry.values.get(sort)) is not None]
        return (sum(known) if known else -1.0, "")

    return measure


def _insert(
    order: list[list[Entry]], family: list[Entry], measure: _Measure, descending: bool
) -> None:
    """From the end upwards past those that clearly belong behind."""
    at, value = len(order), measure(family)
    while at and _passes(value, measure(order[at - 1]), descending):
        at -= 1
    order.insert(at, family)


def _passes(one: tuple[float, str], above: tuple[float, str], descending: bool) -> bool:
    if one[1] or above[1]:
        return one[1] > above[1] if descending else one[1] < above[1]
    if descending:
        return one[0] > max(above[0], 0) * _MARGIN and one[0] > above[0]
    return max(one[0], 0) * _MARGIN < above[0] or one[0] < 0 <= above[0]
