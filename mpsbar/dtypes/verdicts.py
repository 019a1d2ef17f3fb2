"""Verdicts on each dtype, what surprises in them, and what changed between two probes. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from mpsbar.agent.mps_support import DTYPE_SINCE, dtype_macos, has_dtype
from mpsbar.core import torch_facts as versions
from mpsbar.core.dtype_results import Cell, Probe
from mpsbar.core.findings import Reason, Value
from mpsbar.dtypes.operations import COMPILE

Support = Literal["supported", "limited", "unsupported", "unknown"]
_ONLY_STORED = ("create", "copy")
_BAD = ("inaccurate", "crashed", "hung")
# States of a cell that failed, the worst first, and the code of the reason.
_FAILURES = {
    "inaccurate": "dtype_wrong", "crashed": "dtype_crashed", "hung": "dtype_hung",
    "unsupported": "dtype_refused", "fallback": "dtype_falls_back",
}  # fmt: skip
_CHECK_FAILURES = {
    "wrong": "silently_wrong", "crashed": "check_crashed", "hung": "check_hung",
}  # fmt: skip
# What guides for Apple Silicon say of MPS; they name no other dtype.
GUIDES: dict[str, Support] = {
    "float32": "supported", "float16": "limited", "bfloat16": "unsupported",
    "int32": "limited", "int64": "limited",
}  # fmt: skip
# If a call takes so much longer than in float32, the GPU has no fast path for the dtype.
_SLOW_TIMES = 4.0
# If the rounds of one operation differ by more, something else was computing meanwhile.
_UNSTEADY_TIMES = 2.0


@dataclass(frozen=True, slots=True)
class Verdict:
    dtype: str
    support: Support
    reason: Reason  # the most important one
    expected: Support | None = None  # at least, for this torch; None: nothing is known of it
    guides: Support | None = None
    torch_says: bool | None = None
    speed: float | None = None  # relative to float32 on the same device: 2 is twice as fast
    is_speed_rough: bool = False  # the computer was busy while it was measured
    surprises: tuple[Reason, ...] = ()

    @property
    def differs_from_guides(self) -> bool:
        return self.guides not in (None, self.support) and self.support != "unknown"

    @property
    def differs_from_torch(self) -> bool:
        """Returns whether torch lists a dtype that does not work, or leaves out one that works."""
        if self.torch_says is None or self.support == "unknown":
            return False
        return self.torch_says == (self.support == "unsupported")


def judge_dtypes(probe: Probe) -> tuple[Verdict, ...]:
    return tuple(_judge(probe, dtype) for dtype in probe.dtypes)


def find_surprises(probe: Probe) -> tuple[Reason, ...]:
    """Finds silently wrong results, then crashes, then what each dtype does unexpectedly."""
    checks = [
        Reason(_CHECK_FAILURES[c.state], "critical", {"check": c.name, "text": c.text})
        for c in sorted(probe.checks, key=lambda check: check.state != "wrong")
        if c.state in _CHECK_FAILURES
    ]
    codes = [*_FAILURES.values(), "dtype_unsupported", "dtype_slow"]
    dtypes = [reason for verdict in judge_dtypes(probe) for reason in verdict.surprises]
    return (*checks, *sorted(dtypes, key=lambda reason: codes.index(reason.code)))


def count_failures(probe: Probe) -> dict[str, int]:
    """Counts the operations that failed, for each float dtype that failed unexpectedly."""
    counts: dict[str, int] = {}
    for verdict in judge_dtypes(probe):
        if "float" in verdict.dtype and any(
            reason.code != "dtype_slow" for reason in verdict.surprises
        ):
            counts[verdict.dtype] = sum(c.state in _FAILURES for c in probe.of(verdict.dtype))
    return counts


def find_safe(probe: Probe) -> dict[str, bool]:
    """Finds which dtypes a script may use: `add` works, and no operation gave wrong results."""
    safe = {}
    for verdict in judge_dtypes(probe):
        states = {cell.operation: cell.state for cell in probe.of(verdict.dtype)}
        if verdict.support != "unknown":
            is_bad = any(state in _BAD for name, state in states.items() if name != COMPILE)
            safe[verdict.dtype] = states.get("add") in ("works", "fallback") and not is_bad
    return safe


def expect(dtype: str, device: str | None, torch: str | None, system: str | None) -> Support | None:
    """Returns the least to expect of this release of torch on this system."""
    if device == "mps":
        return _expect_mps(dtype, versions.parse_release(torch), versions.parse_numbers(system))
    if dtype in ("float32", "float64"):
        return "supported"
    if dtype in ("float16", "bfloat16"):
        return "supported" if device == "cuda" else "limited"
    return "unsupported" if dtype.startswith("float8") else "limited"


def _expect_mps(
    dtype: str, release: versions.Release | None, system: tuple[int, ...] | None
) -> Support | None:
    if dtype in ("float32", "float16"):
        return "supported"
    if dtype not in DTYPE_SINCE:
        return "unsupported"
    if release is None:
        return None
    macos = dtype_macos(dtype, release)
    too_old = macos is not None and system is not None and system < macos
    if too_old or not has_dtype(dtype, release):
        return "unsupported"
    return "supported" if dtype == "bfloat16" else "limited"


def _judge(probe: Probe, dtype: str) -> Verdict:
    all_cells = [cell for cell in probe.of(dtype) if cell.state != "meaningless"]
    cells = [cell for cell in all_cells if cell.operation != COMPILE]
    expected = expect(dtype, probe.device, probe.torch, probe.system)
    support = _judge_support(cells)
    should_be_fast = expected == "supported" and probe.device != "cpu"
    slow = _find_slow(probe, dtype) if should_be_fast else None
    new = [cell for cell in all_cells if not _is_known_gap(cell, probe)]
    surprises = [*_surprises(dtype, new, support, expected), *([slow] if slow else [])]
    return Verdict(
        dtype, support, _find_reason(dtype, cells, support), expected,
        guides=GUIDES.get(dtype) if probe.device == "mps" else None,
        torch_says=None if probe.capability is None else dtype in probe.capability,
        speed=None if support == "unsupported" else _speed(probe, dtype),
        is_speed_rough=is_busy(probe),
        surprises=tuple(surprises),
    )  # fmt: skip


def _is_known_gap(cell: Cell, probe: Probe) -> bool:
    if cell.operation == COMPILE:  # no verdict on the dtype; wrong results of it are news
        return cell.state not in _BAD
    since = versions.LATER_ON_MPS.get((cell.operation, cell.dtype))
    release = versions.parse_release(probe.torch)
    is_older = since is not None and release is not None and release < since
    return is_older and probe.device == "mps" and cell.state == "unsupported"


def _judge_support(cells: list[Cell]) -> Support:
    known = [cell for cell in cells if cell.state not in ("unknown", "no_memory")]
    computed = [cell for cell in known if cell.operation not in _ONLY_STORED]
    if not computed:
        return "unknown"
    if all(cell.state in ("unsupported", "crashed", "hung") for cell in computed):
        return "unsupported"
    return "supported" if all(cell.state == "works" for cell in known) else "limited"


def _find_reason(dtype: str, cells: list[Cell], support: Support) -> Reason:
    """Finds the worst failure, with the names of all operations that failed so."""
    if support == "unsupported":
        text = next((c.text for c in cells if c.state == "unsupported"), cells[-1].text)
        stored = all(c.state == "works" for c in cells if c.operation in _ONLY_STORED)
        code = "dtype_only_stored" if stored else "dtype_unsupported"
        return Reason(code, "ok", {"dtype": dtype, "error": text})
    for state, code in _FAILURES.items():
        if failed := [cell for cell in cells if cell.state == state]:
            return _build_reason(dtype, code, failed, len(cells))
    missing = sum(cell.state in ("unknown", "no_memory") for cell in cells)
    values: dict[str, Value] = {"dtype": dtype, "number": missing, "of": len(cells)}
    return Reason("dtype_not_measured" if missing else "dtype_works", "ok", values)


def _build_reason(dtype: str, code: str, cells: list[Cell], of: int) -> Reason:
    values: dict[str, Value] = {
        "dtype": dtype, "number": len(cells), "of": of,
        "operations": ", ".join(cell.operation for cell in cells),
        "error": next((cell.text for cell in cells if cell.text), None),
    }  # fmt: skip
    worst = code in ("dtype_wrong", "dtype_crashed", "dtype_hung")
    return Reason(code, "critical" if worst else "warning", values)


def _surprises(
    dtype: str, cells: list[Cell], support: Support, expected: Support | None
) -> Iterator[Reason]:
    if support == "unsupported" and expected in ("limited", "supported"):
        error = next((c.text for c in cells if c.state == "unsupported"), None)
        yield Reason("dtype_unsupported", "warning", {"dtype": dtype, "error": error})
    is_limited = expected == "supported" and support == "limited"
    for state, code in _FAILURES.items():
        failed = [cell for cell in cells if cell.state == state]
        if failed and (state in _BAD or is_limited):
            yield _build_reason(dtype, code, failed, len(cells))


def _find_slow(probe: Probe, dtype: str) -> Reason | None:
    """Finds a dtype whose fastest round is slow against float32's slowest, on an idle computer."""
    slow = [
        (speed.operation, fastest / slowest)
        for speed in probe.speeds
        if dtype in speed.seconds and "float32" in speed.seconds
        for fastest, slowest in ((speed.seconds[dtype][0], speed.seconds["float32"][1]),)
        if fastest > _SLOW_TIMES * slowest
    ]
    if not slow or is_busy(probe):
        return None
    values: dict[str, Value] = {
        "dtype": dtype, "number": len(slow), "times": max(times for _, times in slow),
        "operations": ", ".join(operation for operation, _ in slow),
    }  # fmt: skip
    return Reason("dtype_slow", "warning", values)


def _speed(probe: Probe, dtype: str) -> float | None:
    """Returns the median over the operations that were timed in both dtypes."""
    ratios = sorted(
        speed.seconds["float32"][0] / speed.seconds[dtype][0]
        for speed in probe.speeds
        if dtype in speed.seconds and "float32" in speed.seconds
    )
    return ratios[len(ratios) // 2] if ratios else None


def is_busy(probe: Probe) -> bool:
    """Returns whether other work disturbed the speeds, which are then no verdict on a dtype."""
    is_loaded = (
        probe.load is not None and probe.cores is not None and probe.load > max(1, probe.cores)
    )
    return is_loaded or any(
        slowest > _UNSTEADY_TIMES * fastest
        for speed in probe.speeds
        for fastest, slowest in speed.seconds.values()
    )


ChangeKind = Literal["subject", "check", "dtype", "cell"]
# Neither what was not measured nor what only the newer probe measures is a change.
_NOT_KNOWN = (None, "unknown", "no_memory")


@dataclass(frozen=True, slots=True)
class Change:
    kind: ChangeKind
    name: str  # "torch", "float16", "float16 matmul", "adam"
    before: str
    after: str


def find_changes(before: Probe, after: Probe) -> tuple[Change, ...]:
    """Finds what differs after an upgrade: versions, checks, verdicts, cells."""
    return tuple(
        Change(kind, name, old, new)
        for kind, old_values, new_values in zip(
            get_args(ChangeKind), _list_values(before), _list_values(after), strict=True
        )
        for name, new in new_values.items()
        if new not in _NOT_KNOWN and (old := old_values.get(name)) not in _NOT_KNOWN
        if old is not None and new is not None and old != new
    )


def _list_values(probe: Probe) -> tuple[dict[str, str | None], ...]:
    """Lists the values that are compared, by name, for each kind of change."""
    return (
        {
            "device": probe.device, "torch": probe.torch, "system": probe.system,
            "python": probe.version,
        },
        {check.name: check.state for check in probe.checks},
        {verdict.dtype: verdict.support for verdict in judge_dtypes(probe)},
        {f"{cell.dtype} {cell.operation}": cell.state for cell in probe.cells},
    )  # fmt: skip
