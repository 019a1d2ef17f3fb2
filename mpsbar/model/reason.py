"""A judgement and what speaks for it, as data: a code and its values; views make the sentence."""

from dataclasses import dataclass, field
from typing import Literal

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
