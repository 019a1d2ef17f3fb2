"""How far a run is, in words: 62% · 3.1 it/s · 4 min left. Pure."""

from mpsbar.core.progress import RunProgress
from mpsbar.language import _, ngettext
from mpsbar.ui.text import wording
from mpsbar.ui.text.cells import cut_middle

_MAX_NAME = 24


def say_progress(progress: RunProgress | None) -> str:
    """All that is known, shortest first: Epoch 3 · 62% · 3.1 it/s · 4 min left."""
    if progress is None:
        return ""
    named = next((bar for bar in (progress.inner, progress.bar) if bar and bar.name), None)
    name = "" if named is None else cut_middle(named.name, _MAX_NAME)
    return _join(name, *_numbers(progress), say_left(progress.seconds_left))


def say_briefly(progress: RunProgress | None) -> str:
    """For a table: 62% · 4 min left; without a total how much is done and how fast."""
    if progress is None:
        return ""
    if progress.fraction is not None:
        return _join(say_fraction(progress.fraction), say_left(progress.seconds_left))
    return _join(*_numbers(progress))


def say_fraction(fraction: float | None) -> str:
    """62%, rounded as tqdm and rich do; but never 100% before the end."""
    if fraction is None:
        return wording.UNKNOWN
    return f"{100 if fraction >= 1 else min(99, round(fraction * 100))}%"


def say_left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    whole = max(1, round(seconds)) if seconds < 10 else seconds
    time = _("{n} s").format(n=whole) if seconds < 10 else wording.duration(whole)
    return _("{time} left").format(time=time)


def say_speed(rate: float, unit: str) -> str:
    """3.1 it/s; where one takes longer than a second 2.5 s/it, as tqdm has it."""
    unit = unit or "it"
    if rate >= 1 or not rate:
        return f"{_figures(rate)} {unit}/s"
    return f"{_figures(1 / rate)} s/{unit}"


def say_speeds(before: float, now: float, unit: str) -> tuple[str, str]:
    """Two speeds in one unit, which stands behind the second: 3.1, 0.9 it/s."""
    unit = unit or "it"
    if min(before, now) < 0.1:
        return _figures(1 / before), f"{_figures(1 / now)} s/{unit}"
    return _figures(before), f"{_figures(now)} {unit}/s"


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


def _figures(number: float) -> str:
    return f"{number:,.0f}" if number >= 99.95 else f"{number:.1f}"


def _join(*words: str) -> str:
    return " · ".join(word for word in words if word)
