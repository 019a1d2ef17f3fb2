"""The progress of a run in words, such as 62% · 3.1 it/s · 4 min left. Pure."""

from mpsbar.agent.wording import say_fraction, say_left, say_rate, say_speed
from mpsbar.core.progress import RunProgress
from mpsbar.language import ngettext
from mpsbar.ui.text.cells import cut_middle

__all__ = ["say_briefly", "say_fraction", "say_progress", "say_speed", "say_speeds"]
_MAX_NAME = 24


def say_progress(progress: RunProgress | None) -> str:
    """Returns all that is known, such as Epoch 3 · 62% · 3.1 it/s · 4 min left."""
    if progress is None:
        return ""
    named = next((bar for bar in (progress.inner, progress.bar) if bar and bar.name), None)
    name = "" if named is None else cut_middle(named.name, _MAX_NAME)
    return _join(name, *_numbers(progress), say_left(progress.seconds_left))


def say_briefly(progress: RunProgress | None) -> str:
    """Returns words for a table, such as 62% · 4 min left; without a total, count and speed."""
    if progress is None:
        return ""
    if progress.fraction is not None:
        return _join(say_fraction(progress.fraction), say_left(progress.seconds_left))
    return _join(*_numbers(progress))


def say_speeds(before: float, now: float, unit: str) -> tuple[str, str]:
    """Returns two speeds in one unit, which only the second has, such as 3.1 and 0.9 it/s."""
    unit = unit or "it"
    if min(before, now) < 0.1:
        return say_rate(1 / before), f"{say_rate(1 / now)} s/{unit}"
    return say_rate(before), f"{say_rate(now)} {unit}/s"


def _numbers(progress: RunProgress) -> list[str]:
    bar, speed = progress.bar, progress.speed
    words = []
    if progress.fraction is not None:
        words.append(say_fraction(progress.fraction))
    elif bar is not None:
        words.append(f"{bar.done:,.0f} {bar.unit or 'it'}")
    elif progress.steps is not None:
        words.append(
            ngettext("{n} step", "{n} steps", progress.steps).format(n=f"{progress.steps:,}")
        )
    if speed is not None:
        words.append(say_speed(*speed))
    return words


def _join(*words: str) -> str:
    return " · ".join(word for word in words if word)
