"""A progress bar as it is shown, and how its numbers are read from the host's objects.

Nothing of the host may end on the agent's thread: `tqdm.__del__` takes a lock and prints on the
thread that drops the last reference. So objects of the host are reached through weak references,
and each read is one call of C code (`list` over `map`), in which no other thread runs: it takes an
attribute and lets the object go before Python code of ours goes on. Only plain numbers and text
come out of it.
"""

import sys
from collections.abc import Iterable
from itertools import repeat
from typing import Any, Callable, Optional
from weakref import ref as Ref  # noqa: N812 - it is a class

MAX_BARS = 20
MAX_TEXT = 80
MAX_NUMBER = 2**53
# What transformers shows while it loads: not what a person waits for.
PREPARATIONS = ("Loading", "Downloading", "Fetching")

_PLAIN = frozenset((int, float, str, bool, type(None)))
_NUMBERS = (int, float)
# Class attributes by which reading a field would run somebody's Python code.
_RUNS_CODE = frozenset(("__getattribute__", "__getattr__"))
get_object = Ref.__call__

Fields = dict[str, Any]


class ProgressBar:
    """One progress bar, with numbers that can be shown. Times are seconds since the epoch."""

    def __init__(self, name: str, done: float, total: Optional[float], unit: str) -> None:
        self.name = name
        self.done = done
        # As tqdm does: a total that was passed is not one.
        self.total = None if total is None or done > total else total
        self.unit = unit
        self.began_at = 0.0  # what `done` was at the start: resumed runs do not begin at 0
        self.counted_at: Optional[float] = None  # when `done` was true; None: now

    @property
    def is_finished(self) -> bool:
        return self.total is not None and self.done >= self.total


class Candidate:
    """A bar that has not been read yet: when it began, and how to read it."""

    def __init__(
        self, started: float, key: "tuple[Any, ...]", read: "Callable[[], Optional[ProgressBar]]"
    ) -> None:
        self.started = started
        self.key = key
        self.read = read


def read_fields(reference: "Ref[Any]", names: "tuple[str, ...]") -> Fields:
    """Reads the plain values among the attributes of an object, whose class `is_plain`.

    First the types alone: a value that is a tensor, say, never comes to us.
    """
    objects = map(get_object, repeat(reference, len(names)))
    types = list(map(type, map(getattr, objects, names, repeat(None))))
    plain = [name for name, kind in zip(names, types) if kind in _PLAIN or _is_numpy(kind)]
    objects = map(get_object, repeat(reference, len(plain)))
    return dict(zip(plain, map(getattr, objects, plain, repeat(None))))


def find_started(
    references: "list[Ref[Any]]", names: "tuple[str, ...]", start: str, owner: type
) -> "list[tuple[float, int, Ref[Any]]]":
    """Returns when each of these objects began, its id and itself; without those that have ended.

    `owner` is the class that is known to have plain attributes.
    """
    kinds = list(map(type, map(get_object, references)))
    plain = {kind for kind in set(kinds) if is_plain(kind, names, owner)}
    references = [reference for reference, kind in zip(references, kinds) if kind in plain]
    starts = list(map(getattr, map(get_object, references), repeat(start), repeat(None)))
    identities = list(map(id, map(get_object, references)))
    known = zip(starts, identities, references)
    return [(when, number, ref) for when, number, ref in known if type(when) is float]


def is_plain(kind: type, names: Iterable[str], owner: type) -> bool:
    """Returns whether objects of this class have these attributes as `owner` made them."""
    if kind is owner:
        return True
    bases = type.__dict__["__mro__"].__get__(kind)
    if owner not in bases:
        return False  # also what is left of an object that has ended: None
    unsafe = _RUNS_CODE.union(names)
    above = bases[: bases.index(owner)]
    return all(unsafe.isdisjoint(type.__dict__["__dict__"].__get__(base)) for base in above)


def _is_numpy(kind: type) -> bool:
    """Returns whether it is numpy's float64 or its like: a total is often one."""
    numpy = sys.modules.get("numpy")
    number = None if numpy is None else vars(numpy).get("number")
    return number in type.__dict__["__mro__"].__get__(kind)


def to_number(value: Any) -> Optional[float]:
    """Returns a number that can be shown, or None: no text, no NaN, nothing negative or absurd."""
    if type(value) is bool or not (isinstance(value, _NUMBERS) or _is_numpy(type(value))):
        return None
    number = value if type(value) is int else float(value)
    if not 0 <= number <= MAX_NUMBER:
        return None
    return int(number) if number == int(number) else number


def to_text(value: Any) -> str:
    if type(value) is not str:
        return ""
    shown = "".join(c if c.isprintable() else " " for c in value[: 2 * MAX_TEXT])
    return " ".join(shown.split()).rstrip(":").strip()[:MAX_TEXT]
