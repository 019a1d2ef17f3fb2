"""Results of the dtype probe: a cell for each operation and dtype, a check for each bug. Pure.

None: not known. The values of `state` are those that dtypes/dtype_child.py sends.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, cast, get_args, get_type_hints

from mpsbar.agent.secrets import mask
from mpsbar.core.naming import printable
from mpsbar.language import _

SCHEMA = 1
CellState = Literal[
    "works", "inaccurate", "fallback", "unsupported", "crashed", "hung", "meaningless", "no_memory",
    "unknown",
]  # fmt: skip
CheckState = Literal["right", "wrong", "refused", "crashed", "hung", "no_memory", "unknown"]
# How the probe ended; only the first three have cells.
ProbeEnded = Literal[
    "ok", "cancelled", "stopped", "no_torch", "broken_torch", "no_device", "crashed", "exited",
    "hung", "no_python", "not_python", "unsafe",
]  # fmt: skip
_LONGEST_TEXT = 600
_MAX_CELLS = 2000
_MAX_DTYPES = 40


@dataclass(frozen=True, slots=True)
class Cell:
    operation: str
    dtype: str
    state: CellState
    text: str | None = None  # torch's own message, or the signal it crashed with
    error: float | None = None  # the largest error, relative to the largest number of the result


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    state: CheckState
    text: str | None = None  # what is wrong, or why it was refused


@dataclass(frozen=True, slots=True)
class OperationSpeed:
    """Seconds of one call on large tensors, for each dtype that was timed."""

    operation: str
    size: str | None
    # The fastest and the slowest round. Not in the hash: views are cached by their probe.
    seconds: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ProbeIdentity:
    """What a probe or a deep probe holds for: one device, torch, Python and system."""

    python: str  # the path that was run
    ended: ProbeEnded
    prefix: str | None = None
    version: str | None = None  # version of Python
    torch: str | None = None
    system: str | None = None  # version of macOS, such as 15.1; on Linux, of the kernel
    os: str | None = None  # macOS, Linux
    device: str | None = None
    device_name: str | None = None


@dataclass(frozen=True, slots=True)
class Probe(ProbeIdentity):
    """The result of one probe, in the order of its JSON."""

    torch_file: str | None = None
    capability: tuple[str, ...] | None = None  # torch's own list of supported dtypes
    fallback: str | None = None  # PYTORCH_ENABLE_MPS_FALLBACK during the probe
    error: str | None = None  # why the probe as a whole failed
    cells: tuple[Cell, ...] = ()
    checks: tuple[Check, ...] = ()
    speeds: tuple[OperationSpeed, ...] = ()
    load: float | None = None  # load average of the minute before
    cores: int | None = None
    time: float | None = None  # seconds since the epoch
    seconds: float | None = None  # duration of the probe
    memory: int | None = None  # the most it used, in bytes above what torch itself takes
    ceiling: int | None = None  # the most it was allowed to use, in bytes

    @property
    def dtypes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.dtype for cell in self.cells))

    @property
    def operations(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.operation for cell in self.cells))

    @property
    def measured(self) -> int:
        """Returns the number of cells and checks that are known."""
        results: tuple[Cell | Check, ...] = (*self.cells, *self.checks)
        return sum(result.state != "unknown" for result in results)

    def of(self, dtype: str) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.dtype == dtype)


@dataclass(frozen=True, slots=True)
class Progress:
    done: int
    total: int | None  # None: torch is still being imported

    @property
    def part(self) -> float:
        return self.done / self.total if self.total else 0.0

    @property
    def percent(self) -> int:
        return 100 * self.done // self.total if self.total else 0


def build_cell(name: str, answer: Mapping[str, Any]) -> Cell | Check:
    """Builds a cell for a name like add/float16, a check for a name without a slash."""
    operation, slash, dtype = name.partition("/")
    text = parse_text(answer.get("text"))
    state: Any = answer.get("state")
    if not slash:
        return Check(name, state if state in get_args(CheckState) else "unknown", text)
    return Cell(
        operation, dtype, state if state in get_args(CellState) else "unknown", text,
        parse_number(answer.get("error")),
    )  # fmt: skip


def build_speed(operation: str, answer: Mapping[str, Any]) -> OperationSpeed:
    """Builds the speeds of one operation; anything but pairs of positive numbers is left out."""
    seconds: Any = answer.get("seconds")
    pairs = seconds.items() if isinstance(seconds, dict) else ()
    return OperationSpeed(
        operation, parse_text(answer.get("size"), 40),
        {
            dtype: (float(times[0]), float(times[1]))
            for name, times in list(pairs)[:_MAX_DTYPES]
            if (dtype := parse_text(name, 40)) and _is_pair(times)
        },
    )  # fmt: skip


def _is_pair(value: Any) -> bool:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return False
    fastest, slowest = map(parse_number, value)
    return fastest is not None and slowest is not None and 0 < fastest <= slowest < 1e6


def parse_ended(record: Mapping[str, Any], schema: int) -> ProbeEnded:
    """Returns how a probe ended; ValueError if the record has another schema or does not say."""
    if record.get("schema") != schema:
        complaint = _("written by another version of mpsbar (schema {schema!r})")
        raise ValueError(complaint.format(schema=record.get("schema")))
    ended: Any = record.get("ended")
    if ended not in get_args(ProbeEnded):
        raise ValueError(_("damaged: the outcome of the probe is missing"))
    return cast("ProbeEnded", ended)


def build_probe_json(probe: Probe) -> dict[str, Any]:
    """Builds JSON values of a probe, for a file or a pipe; `parse_probe_json` reads them again."""
    return {"schema": SCHEMA, "kind": "mpsbar probe", **asdict(probe)}


def parse_probe_json(record: Any) -> Probe:
    """Parses what `build_probe_json` built; ValueError says what is wrong with it."""
    if not isinstance(record, dict) or record.get("kind") != "mpsbar probe":
        raise ValueError(_("not a result of mpsbar probe"))
    return Probe(
        **parse_fields(Probe, record, SCHEMA),
        capability=_names(record.get("capability")),
        cells=tuple(c for c in _parse_cells(record.get("cells")) if isinstance(c, Cell)),
        checks=tuple(c for c in _parse_cells(record.get("checks")) if isinstance(c, Check)),
        speeds=tuple(_parse_speeds(record.get("speeds"))),
    )


def parse_fields(
    kind: type[ProbeIdentity], record: Mapping[str, Any], schema: int
) -> dict[str, Any]:
    """Returns the fields of `kind` that are texts or numbers; None for a value that is neither.

    ValueError if the record has another schema or does not say how the probe ended.
    """
    parsers: dict[Any, Callable[[Any], Any]] = {
        str | None: lambda value: parse_text(value, 4096),
        float | None: parse_number,
        int | None: parse_count,
    }
    types = get_type_hints(kind)
    found = {name: parsers[t](record.get(name)) for name, t in types.items() if t in parsers}
    python = parse_text(record.get("python"), 4096) or "?"
    return {"python": python, "ended": parse_ended(record, schema), **found}


def parse_text(value: Any, most: int = _LONGEST_TEXT) -> str | None:
    """Returns untrusted text on one line; None for any other value."""
    return printable(" ".join(value[:most].split()), most) if isinstance(value, str) else None


def parse_number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, float | int) else None
    except OverflowError:
        return None


def find_complaint(texts: Iterable[object], *tails: bytes, most: int = 600) -> str | None:
    """Returns the first of the texts, else the last line written to stderr; without secrets."""
    for text in (*texts, *map(last_line, tails)):
        if found := parse_text(text, most):
            return mask(found)
    return None


def last_line(tail: bytes) -> str | None:
    lines = tail.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else None


def _parse_cells(value: Any) -> Iterable[Cell | Check]:
    for cell in value[:_MAX_CELLS] if isinstance(value, list) else ():
        if not isinstance(cell, dict):
            continue
        operation, dtype, name = (parse_text(cell.get(k)) for k in ("operation", "dtype", "name"))
        if operation and dtype:
            yield build_cell(f"{operation}/{dtype}", cell)
        elif name:
            yield build_cell(name, cell)


def _parse_speeds(value: Any) -> Iterable[OperationSpeed]:
    for speed in value[:_MAX_DTYPES] if isinstance(value, list) else ():
        if isinstance(speed, dict) and (operation := parse_text(speed.get("operation"), 40)):
            yield build_speed(operation, speed)


def _names(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    return tuple(name for name in map(parse_text, value[:100]) if name)


def parse_count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
