"""Results of `mpsbar probe --deep`: a cell for each of torch's operations and each dtype. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from mpsbar.core.dtype_results import (
    CellState,
    ProbeIdentity,
    parse_count,
    parse_fields,
    parse_number,
    parse_text,
)
from mpsbar.language import _

SCHEMA = 1
KIND = "mpsbar deep probe"
DTYPES = (
    "float32", "float16", "bfloat16", "float64", "complex64", "complex128", "int64", "int32",
    "int16", "int8", "uint8", "bool",
)  # fmt: skip
# States of a cell, the worst first.
DEEP_STATES: tuple[CellState, ...] = (
    "inaccurate", "crashed", "hung", "unsupported", "fallback", "works", "meaningless",
    "no_memory", "unknown",
)  # fmt: skip
_MAX_CELLS = 50_000
News = Literal["worse", "better"]


@dataclass(frozen=True, slots=True)
class DeepCell:
    operation: str
    dtype: str
    state: CellState
    expected: bool | None = None  # whether torch's own tests expect it to work; None: not known
    text: str | None = None  # torch's own message, the signal, or what was not compared
    error: float | None = None  # the largest error, relative to the largest number of the result

    @property
    def news(self) -> News | None:
        """Returns how this differs from what torch's own tests expect; None if it does not."""
        if self.expected is None:
            return None
        if self.state in ("crashed", "hung"):  # a test that crashed would be left out
            return "worse"
        if self.state in ("inaccurate", "unsupported", "fallback") and self.expected:
            return "worse"
        return "better" if self.state == "works" and not self.expected else None


@dataclass(frozen=True, slots=True)
class DeepProbe(ProbeIdentity):
    """The result of one deep probe, in the order of its JSON."""

    fallback: str | None = None  # PYTORCH_ENABLE_MPS_FALLBACK
    only: str | None = None  # the pattern of operation names that was asked for
    error: str | None = None  # why it failed as a whole
    total: int = 0  # total number of cells
    time: float | None = None
    seconds: float | None = None
    cells: tuple[DeepCell, ...] = ()

    @property
    def dtypes(self) -> tuple[str, ...]:
        occurring = {cell.dtype for cell in self.cells}
        return tuple(dtype for dtype in DTYPES if dtype in occurring)

    @property
    def subject(self) -> dict[str, str | None]:
        """Names and values of what was measured where."""
        return {
            "device": self.device, "machine": self.device_name, "torch": self.torch,
            "system": self.system, "python": self.version,
        }  # fmt: skip

    @property
    def expectation_known(self) -> bool:
        return any(cell.expected is not None for cell in self.cells)

    def find_news(self, news: News) -> list[DeepCell]:
        """Finds the cells that are news, the worst first."""
        found = [cell for cell in self.cells if cell.news == news]
        return sorted(found, key=lambda cell: (DEEP_STATES.index(cell.state), cell.operation))


def build_deep_cell(name: str, answer: Mapping[str, Any]) -> DeepCell:
    operation, _, dtype = name.rpartition("/")
    state: Any = answer.get("state")
    expected = answer.get("expected")
    return DeepCell(
        operation, dtype, state if state in get_args(CellState) else "unknown",
        expected if isinstance(expected, bool) else None,
        parse_text(answer.get("text")), parse_number(answer.get("error")),
    )  # fmt: skip


def build_deep_record(probe: DeepProbe) -> dict[str, Any]:
    """Builds JSON values of the result; `parse_deep_record` reads them again."""
    record = {"schema": SCHEMA, "kind": KIND, **asdict(probe)}
    record["cells"] = [{**asdict(cell), "news": cell.news} for cell in probe.cells]
    return record


def parse_deep_record(record: Any) -> DeepProbe:
    """Parses a result; ValueError says what is wrong with it."""
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise ValueError(_("not a result of mpsbar probe --deep"))
    return DeepProbe(
        **parse_fields(DeepProbe, record, SCHEMA),
        total=parse_count(record.get("total")) or 0,
        cells=tuple(parse_deep_cells(record.get("cells"))),
    )


def parse_deep_cells(value: Any) -> Iterable[DeepCell]:
    for cell in value[:_MAX_CELLS] if isinstance(value, list) else ():
        if not isinstance(cell, dict):
            continue
        operation, dtype = (parse_text(cell.get(name), 200) for name in ("operation", "dtype"))
        if operation and dtype:
            yield build_deep_cell(f"{operation}/{dtype}", cell)


@dataclass(frozen=True, slots=True)
class DeepChange:
    cell: DeepCell  # as it is now
    before: CellState


def find_deep_changes(before: DeepProbe, after: DeepProbe) -> tuple[DeepChange, ...]:
    """Finds cells that were measured in both and differ, the worst first."""
    not_known = ("unknown", "no_memory")
    old = {(cell.operation, cell.dtype): cell.state for cell in before.cells}
    changes = [
        DeepChange(cell, state)
        for cell in after.cells
        if (state := old.get((cell.operation, cell.dtype))) is not None
        if state != cell.state and state not in not_known and cell.state not in not_known
    ]
    return tuple(sorted(changes, key=lambda c: (DEEP_STATES.index(c.cell.state), c.cell.operation)))


def build_deep_changes(before: DeepProbe | None, after: DeepProbe) -> dict[str, Any]:
    """Builds JSON of what was compared with, and the cells that changed; null if nothing was."""
    if before is None:
        return {"against": None, "changes": None}
    changes = [
        {"operation": c.cell.operation, "dtype": c.cell.dtype, "before": c.before,
         "after": c.cell.state}
        for c in find_deep_changes(before, after)
    ]  # fmt: skip
    return {"against": {**before.subject, "time": before.time}, "changes": changes}
