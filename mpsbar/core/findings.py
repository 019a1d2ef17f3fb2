"""Health, its reasons and advice as data: codes, values, levels; ui/text makes sentences. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Level = Literal["ok", "warning", "critical"]
Value = int | float | str | None


@dataclass(frozen=True, slots=True)
class Reason:
    code: str
    level: Level  # "ok": worth knowing, no cause for concern
    values: dict[str, Value] = field(default_factory=dict)
    pid: int | None = None  # the process it is about; None: the machine


@dataclass(frozen=True, slots=True)
class Health:
    """`level` is that of the worst reason; the reasons stand worst first."""

    level: Level = "ok"
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """The next step to take, and for which process or Python."""

    code: str
    values: dict[str, Value] = field(default_factory=dict)
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class DtypeHealth:
    """The last dtype probe in short, for status and advice."""

    summary: dict[str, Any] | None = None  # in schema 1; None: not probed, or out of date
    surprise: str = ""  # the headline, if there is a surprise
    failed: Mapping[str, int] = field(default_factory=dict)  # number of operations by dtype


NOT_PROBED = DtypeHealth()
