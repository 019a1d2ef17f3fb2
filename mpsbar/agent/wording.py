"""Sizes, times, speeds and the reasons of a busy process in words: in a notebook and in mpsbar."""

from typing import Optional

from .language import _, mark

UNKNOWN = "?"
_UNITS = ("B", "kB", "MB", "GB", "TB")
_REASONS = {
    "thread_computing": mark("another thread is computing"),
    "thread_unproven": mark("another thread couldn't be shown to be waiting"),
    "main_computing": mark("the main thread is computing"),
    "main_unproven": mark("the main thread couldn't be shown to be waiting"),
    "main_waiting": mark("the main thread is waiting and couldn't be reached"),
    "switch_interval": mark("its thread switch interval is unusually long"),
    "slow": mark("the computer was too busy"),
    "free_threaded": mark("it runs without the GIL"),
    "forked": mark("the process forked in the meantime"),
    "deep_recursion": mark("its call stack is too deep"),
    "interrupted": mark("it was interrupted"),
    "too_often": mark("too many requests: try again later"),
}


def say_why_busy(code: Optional[str], where: Optional[str]) -> str:
    """Returns why no safe moment was found: another thread is computing (train.py:7 in step)."""
    words = _(_REASONS[code]) if code in _REASONS else _("no safe moment was found")
    return f"{words} ({where})" if where else words


def size(count: Optional[int]) -> str:
    """Returns a size as Activity Monitor shows it: 1024 to the next unit, three figures at most."""
    if count is None:
        return UNKNOWN
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    digits = 1 if unit >= 2 and value < 99.95 else 0
    return f"{value:.{digits}f} {_UNITS[unit]}"


def duration(seconds: Optional[float]) -> str:
    """Returns a duration, such as 40 ms, 3.2 s, 45 s, 5 min or 3 h."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0.9995:
        return _("{n} ms").format(n=f"{seconds * 1000:.0f}")
    if seconds < 119.5:
        return _("{n} s").format(n=f"{seconds:.1f}" if seconds < 9.95 else f"{seconds:.0f}")
    if seconds < 7170:
        return _("{n} min").format(n=f"{seconds / 60:.0f}")
    return _("{n} h").format(n=f"{seconds / 3600:.0f}")


def say_fraction(fraction: Optional[float]) -> str:
    """Returns a percentage, such as 62%, rounded as tqdm and rich do; never 100% before the end."""
    if fraction is None:
        return UNKNOWN
    return f"{100 if fraction >= 1 else min(99, round(fraction * 100))}%"


def say_left(seconds: Optional[float]) -> str:
    if seconds is None:
        return ""
    whole = max(1, round(seconds)) if seconds < 10 else seconds
    time = _("{n} s").format(n=whole) if seconds < 10 else duration(whole)
    return _("{time} left").format(time=time)


def say_speed(rate: float, unit: str) -> str:
    """Returns a speed such as 3.1 it/s; 2.5 s/it, as tqdm, where one takes longer than a second."""
    unit = unit or "it"
    if rate >= 1 or not rate:
        return f"{say_rate(rate)} {unit}/s"
    return f"{say_rate(1 / rate)} s/{unit}"


def say_rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 99.95 else f"{number:.1f}"
