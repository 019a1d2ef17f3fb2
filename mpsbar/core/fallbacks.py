"""Operations that ran on the CPU because MPS lacks them, and torch's own log of them. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from mpsbar.core.untrusted import clean_text, is_number, is_whole

_UNITS = {"bytes": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "KiB": 1 << 10,
          "MiB": 1 << 20, "GiB": 1 << 30}  # fmt: skip
# A row of the table that torch prints: ID, runs, mean and total ms, bytes copied, name.
_ROW = re.compile(
    r"\s*\d+\s+(\d{1,15})\s+[\d.]+\s+([\d.]{1,20})\s+([\d.]{1,20}) ?([A-Za-z]+)"
    r"\s+([\w:.]{1,100})\s*"
)
_TITLE = re.compile(r"-* CPU Fallback Profiling: Total .* -*")
_HEADERS = re.compile(r"\s*ID\s*\|\s*#Runs\s*\|.*Operation Name\s*")
_RULE = re.compile(r"-{20,}")
_Number = TypeVar("_Number", int, float)
NOTHING_LOGGED = "There are no CPU Fallbacks logged for profiling"
_MAX_OPERATIONS = 100
_MAX_TEXT = 300
_MAX_NUMBER = 2**53


@dataclass(frozen=True, slots=True)
class FallbackOperation:
    name: str  # its name in torch: aten::linalg_svd
    count: int
    where: str = ""  # file:line of the first call
    seconds: float | None = None  # None: not in torch's log
    copied: int | None = None  # bytes between the devices


@dataclass(frozen=True, slots=True)
class Fallbacks:
    """Which operations fell back to the CPU in one run, in all its processes together."""

    operations: tuple[FallbackOperation, ...] = ()
    torch: str | None = None  # None: no process imported torch, or none was connected
    is_profiled: bool = False  # torch's own log was read
    is_complete: bool = True  # False: a process could not report all, there may be more
    is_counted: bool = True  # False: without --explain torch names only the first

    @property
    def count(self) -> int:
        return sum(operation.count for operation in self.operations)


def parse_profile(text: str) -> tuple[list[FallbackOperation], list[str], bool]:
    """Returns the rows of torch's table, the other lines, and whether there was a table."""
    rows: list[FallbackOperation] = []
    others: list[str] = []
    is_table = is_profiled = False
    for line in text.splitlines():
        row = _ROW.fullmatch(line) if is_table else None
        if row is not None and row[4] in _UNITS:
            copied = int(float(row[3]) * _UNITS[row[4]])
            rows.append(FallbackOperation(row[5], int(row[1]), "", float(row[2]) / 1000, copied))
        elif _TITLE.fullmatch(line):
            is_table = is_profiled = True
        elif line.strip() == NOTHING_LOGGED:
            is_profiled = True
        elif is_table and (_HEADERS.fullmatch(line) or _RULE.fullmatch(line)):
            continue
        elif line.strip():
            others.append(line)
    return rows, others, is_profiled


def merge_operations(operations: Iterable[FallbackOperation]) -> tuple[FallbackOperation, ...]:
    """Adds up the operations of several processes; the most frequent comes first."""
    merged: dict[str, FallbackOperation] = {}
    for operation in operations:
        before = merged.get(operation.name)
        if before is None:
            merged[operation.name] = operation
            continue
        merged[operation.name] = FallbackOperation(
            operation.name, before.count + operation.count, before.where or operation.where,
            _add_known(before.seconds, operation.seconds),
            _add_known(before.copied, operation.copied),
        )  # fmt: skip
    return tuple(sorted(merged.values(), key=lambda operation: -operation.count))


def complete_by_profile(
    counted: Sequence[FallbackOperation], profiled: Sequence[FallbackOperation]
) -> list[FallbackOperation]:
    """Completes the warnings of one process by torch's log of it, which counts what they miss."""
    logged = {base_name(row.name): row for row in profiled}
    overloads: dict[str, list[FallbackOperation]] = {}
    for operation in counted:
        overloads.setdefault(base_name(operation.name), []).append(operation)
    completed = []
    for name, group in overloads.items():
        row = logged.pop(name, None)
        if row is None:
            completed += group
            continue
        # The log has one row for all overloads: its time and bytes are theirs together.
        count = max(row.count, sum(operation.count for operation in group))
        known = replace(group[0], count=count, seconds=row.seconds, copied=row.copied)
        completed.append(known if len(group) == 1 else replace(known, name=name))
    # Operations on single numbers, which torch computes on the CPU on purpose.
    rest = [row for row in logged.values() if not row.name.startswith("scalar_")]
    return [*completed, *rest]


def parse_operations(value: Any) -> list[FallbackOperation]:
    """Parses rows of name, count, line, seconds, bytes: what a worker left is not trusted."""
    operations = []
    for entry in value[:_MAX_OPERATIONS] if isinstance(value, list | tuple) else ():
        if not isinstance(entry, list | tuple) or not 3 <= len(entry) <= 5:
            continue
        name, count, where, seconds, copied = (*entry, None, None)[:5]
        if isinstance(name, str) and name and is_whole(count, _MAX_NUMBER):
            operations.append(
                FallbackOperation(
                    clean_text(name, _MAX_TEXT), count, clean_text(where, _MAX_TEXT),
                    float(seconds) if is_number(seconds, _MAX_NUMBER) else None,
                    int(copied) if is_number(copied, _MAX_NUMBER) else None,
                )
            )  # fmt: skip
    return operations


def parse_fallbacks(value: Any) -> Fallbacks | None:
    """Parses what asdict() made of Fallbacks; None for anything else and for a run without any."""
    if not isinstance(value, Mapping) or not isinstance(value.get("operations"), list | tuple):
        return None
    rows = [
        [entry.get(name) for name in ("name", "count", "where", "seconds", "copied")]
        for entry in value["operations"][:_MAX_OPERATIONS]
        if isinstance(entry, Mapping)
    ]
    operations = tuple(parse_operations(rows))
    if not operations:
        return None
    flags = [value.get(name) is True for name in ("is_profiled", "is_complete", "is_counted")]
    return Fallbacks(operations, clean_text(value.get("torch"), _MAX_TEXT)[:40] or None, *flags)


def base_name(name: str) -> str:
    """Removes the overload, as in aten::sort.stable: torch's warning has it, its log has not."""
    return name.partition(".")[0]


def _add_known(first: _Number | None, second: _Number | None) -> _Number | None:
    return second if first is None else first if second is None else first + second
