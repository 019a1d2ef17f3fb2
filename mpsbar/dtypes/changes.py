"""What differs between two results of the dtype probe: after an upgrade of torch or macOS. Pure."""

from dataclasses import dataclass
from typing import Literal

from mpsbar.core.dtype_results import Probe
from mpsbar.dtypes.verdicts import judge_dtypes

Kind = Literal["subject", "dtype", "cell", "check"]
# Not measured is no change; nor is what only the newer one can measure.
_NOT_KNOWN = (None, "unknown", "no_memory")


@dataclass(frozen=True, slots=True)
class Change:
    kind: Kind
    name: str  # "torch", "float16", "float16 matmul", "adam"
    before: str
    after: str


def find_changes(before: Probe, after: Probe) -> tuple[Change, ...]:
    """First who was asked, then the verdicts, then what they rest on."""
    return (
        *_compare("subject", _subject(before), _subject(after)),
        *_compare("check", _checks(before), _checks(after)),
        *_compare("dtype", _verdicts(before), _verdicts(after)),
        *_compare("cell", _cells(before), _cells(after)),
    )


def _compare(
    kind: Kind, before: dict[str, str | None], after: dict[str, str | None]
) -> list[Change]:
    return [
        Change(kind, name, was, now)
        for name, now in after.items()
        if now not in _NOT_KNOWN and (was := before.get(name)) not in _NOT_KNOWN
        if was is not None and now is not None and was != now
    ]


def _subject(probe: Probe) -> dict[str, str | None]:
    return {
        "device": probe.device, "torch": probe.torch, "system": probe.system,
        "python": probe.version,
    }  # fmt: skip


def _checks(probe: Probe) -> dict[str, str | None]:
    return {check.name: check.state for check in probe.checks}


def _verdicts(probe: Probe) -> dict[str, str | None]:
    return {verdict.dtype: verdict.standing for verdict in judge_dtypes(probe)}


def _cells(probe: Probe) -> dict[str, str | None]:
    return {f"{cell.dtype} {cell.operation}": cell.state for cell in probe.cells}
