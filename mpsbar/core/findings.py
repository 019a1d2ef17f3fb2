"""Judgements as data: a code and its values, a level; ui/text makes the sentences. Pure."""

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
    pid: int | None = None  # whom it is about; None: the machine


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
    summary: dict[str, Any] | None = None  # as schema 1 has it; None: not probed, or no longer so
    surprise: str = ""  # the headline, if there is something to be told
    failed: Mapping[str, int] = field(default_factory=dict)  # in how many operations, by dtype


NOT_PROBED = DtypeHealth()
