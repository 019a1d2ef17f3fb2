"""How far a run is and how fast, as its agent reads it. None: not known. Pure."""

from dataclasses import dataclass

# A second; what counts faster is no run, and would not fit into the history.
_MAX_SPEED = 1e9


@dataclass(frozen=True, slots=True)
class RunBar:
    """One progress bar of a run."""

    name: str
    done: float
    total: float | None = None
    unit: str = ""
    rate: float | None = None  # units per second
    seconds_left: float | None = None

    @property
    def fraction(self) -> float | None:
        return None if not self.total else min(1.0, self.done / self.total)


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The outermost bar, the innermost that moves inside it, and the optimizer's steps."""

    bar: RunBar | None = None
    inner: RunBar | None = None
    steps: int | None = None
    steps_per_second: float | None = None

    @property
    def fraction(self) -> float | None:
        return None if self.bar is None else self.bar.fraction

    @property
    def seconds_left(self) -> float | None:
        return None if self.bar is None else self.bar.seconds_left

    @property
    def speed(self) -> tuple[float, str] | None:
        """Returns how much it does a second, and of what: the finest unit that is known."""
        for bar in (self.inner, self.bar):
            if bar is not None and bar.rate is not None:
                return bar.rate, bar.unit
        return None if self.steps_per_second is None else (self.steps_per_second, "step")

    @property
    def millionths(self) -> int | None:
        """Returns its speed in millionths a second: an epoch may take an hour."""
        speed = self.speed
        return None if speed is None or speed[0] > _MAX_SPEED else round(speed[0] * 1e6)
