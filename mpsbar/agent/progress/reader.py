"""Reads how far the run is: finds the bars of all sources, and chooses which of them to show."""

import time
from typing import Any, Optional

from . import lightning, rich, tqdm
from .bars import Candidate, ProgressBar
from .optimizer_steps import read_steps
from .rates import RateMeter

# Lightning first: the bars that it draws with tqdm or rich show the same.
SOURCES = (lightning, tqdm, rich)
MAX_READ = 5  # from each end of the list
# A bar that has not moved for this long is not what the run is doing, if another one moves.
STILL_SECONDS = 300.0
BAR_FIELDS = ("name", "done", "total", "unit", "rate", "seconds_left")  # as _describe has them


class ProgressReader:
    """Reads how far the run is, and remembers enough of each bar to know its speed."""

    def __init__(self) -> None:
        self._meters: dict[tuple[Any, ...], RateMeter] = {}

    def read(self) -> "Optional[dict[str, Any]]":
        """Returns the fields of `stats`, or None where nothing is known."""
        now = time.time()
        candidates = sorted(_find_candidates(now), key=lambda candidate: candidate.started)
        steps = read_steps()
        used: dict[tuple[Any, ...], RateMeter] = {}
        outer, inner = self._choose(candidates, used, now)
        if outer is None and steps is None:
            return None
        fields: dict[str, Any] = outer or dict.fromkeys(BAR_FIELDS)
        fields["inner"] = inner
        fields["steps"] = steps
        fields["steps_per_second"] = None
        if steps is not None:
            meter = used["steps",] = self._meters.get(("steps",)) or RateMeter(now, steps)
            meter.add(now, steps)
            fields["steps_per_second"] = meter.rate(now)
        self._meters = used
        return fields

    def _choose(
        self, candidates: "list[Candidate]", used: "dict[tuple[Any, ...], RateMeter]", now: float
    ) -> "tuple[Optional[dict[str, Any]], Optional[dict[str, Any]]]":
        """Returns the outermost bar with a total, and the innermost that moves inside it.

        An outer bar is older than those inside it; so most bars need not be read.
        """
        best: Any = None
        for index, candidate in enumerate(candidates[:MAX_READ]):
            bar = candidate.read()
            if bar is None:
                continue
            meter = self._follow(candidate, bar, used, now)
            is_still = now - meter.moved_at >= STILL_SECONDS
            rank = (bar.total is None, bar.is_finished, is_still)
            if best is None or rank < best[0]:
                best = (rank, index, bar, meter)
            if not any(rank):
                break
        if best is None:
            return None, None
        _, index, bar, meter = best
        outer = _describe(bar, meter, now)
        for candidate in candidates[: max(index, len(candidates) - MAX_READ - 1) : -1]:
            bar = candidate.read()
            if bar is None or bar.is_finished:
                continue
            meter = self._follow(candidate, bar, used, now)
            if now - meter.moved_at < STILL_SECONDS:
                return outer, _describe(bar, meter, now)
        return outer, None

    def _follow(
        self,
        candidate: Candidate,
        bar: ProgressBar,
        used: "dict[tuple[Any, ...], RateMeter]",
        now: float,
    ) -> RateMeter:
        meter = self._meters.get(candidate.key) or RateMeter(candidate.started, bar.began_at)
        used[candidate.key] = meter
        meter.add(now if bar.counted_at is None else bar.counted_at, bar.done)
        return meter


def _describe(bar: ProgressBar, meter: RateMeter, now: float) -> "dict[str, Any]":
    rate = meter.rate(now)
    left = None
    if rate and bar.total is not None:
        left = max(0.0, (bar.total - bar.done) / rate - (now - meter.moved_at))
    return {
        "name": bar.name,
        "done": bar.done,
        "total": bar.total,
        "unit": bar.unit,
        "rate": rate,
        "seconds_left": left,
    }


def _find_candidates(now: float) -> "list[Candidate]":
    candidates: list[Candidate] = []
    for source in SOURCES:
        try:
            candidates += source.find_bars(now)
        except Exception:  # noqa: BLE001, S112 - an unknown version: nothing is known of its bars
            continue
        if candidates and source is lightning:
            break
    return candidates
