"""Sizes that people type, and a limit as torch's watermarks. Pure.

A limit is in bytes. torch compares what is asked for with it, not the heap that it then creates: a
small tensor can create a heap of 1 GB above the limit. Above the low watermark heaps are only as
large as needed, so that is set one heap below the limit; only the environment can set it, before
the start.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from mpsbar.agent.conventions import LIMIT_VARIABLE, MAX_LIMIT, MIN_LIMIT
from mpsbar.core.errors import UserError
from mpsbar.core.torch_facts import HIGH, LOW, MAX_RATIO
from mpsbar.language import _

HEAP = 1 << 30  # the largest heap that torch creates for a smaller tensor
# Of Metal's budget; the menu offers these.
PERCENTS = (50, 75, 90)

_DIGITS = 6  # of a ratio
# 1024 to the next unit, as sizes are shown.
_UNITS = {"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([MGT])(?:i?B)?", re.ASCII | re.IGNORECASE)
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)\s*%", re.ASCII)


def parse_size(text: str) -> int | None:
    """Returns the bytes of 24GB, 1.5 G or 512MiB; None for anything else, also without a unit."""
    match = _SIZE.fullmatch(text.strip())
    return round(float(match[1]) * _UNITS[match[2].upper()]) if match else None


def parse_limit(text: str, budget: int | None) -> int:
    """Returns the bytes of a size or of a part of Metal's budget; UserError says what is wrong."""
    size, percent = parse_size(text), _PERCENT.fullmatch(text.strip())
    if percent is not None:
        if budget is None:
            raise UserError(_("Metal's budget is not known here: give a size, such as 24GB"))
        size = int(float(percent[1]) / 100 * budget)
    if size is None:
        complaint = _("not a size: {text!r}; for example 24GB, 1500MB or 75%")
        raise UserError(complaint.format(text=text[:40]))
    if not MIN_LIMIT <= size <= MAX_LIMIT:
        complaint = _("a limit must be at least {least} MB: {text!r}")
        raise UserError(complaint.format(least=MIN_LIMIT >> 20, text=text[:40]))
    if budget is not None and size > MAX_RATIO * budget:
        complaint = _("more than twice Metal's budget of {budget:.1f} GB: {text!r}")
        raise UserError(complaint.format(budget=budget / HEAP, text=text[:40]))
    return size


@dataclass(frozen=True, slots=True)
class LimitedEnvironment:
    variables: Mapping[str, str]  # to add to a command's
    kept: tuple[str, ...] = ()  # of torch's, which the person has set: they are left as they are
    has_budget: bool = True  # False: torch cannot be limited, because its ratios need the budget


def limit_environment(
    environ: Mapping[str, str], limit: int, budget: int | None
) -> LimitedEnvironment:
    """Returns the variables that start a command with a limit; what the person has set stays."""
    variables = {LIMIT_VARIABLE: str(limit)}
    kept = tuple(name for name in (HIGH, LOW) if name in environ)
    if budget is None or kept:
        return LimitedEnvironment(variables, kept, budget is not None)
    high, low = find_watermarks(limit, budget)
    return LimitedEnvironment(variables | {HIGH: high, LOW: low})


def find_watermarks(limit: int, budget: int) -> tuple[str, str]:
    """Returns the high and the low watermark ratio for torch: a valid pair, never 0."""
    low = max(limit - HEAP, limit // 2)
    return _ratio(limit, budget), _ratio(low, budget)


def _ratio(size: int, budget: int) -> str:
    """Returns the ratio, rounded down: the limit is never above what was asked for."""
    scale = 10**_DIGITS
    ratio = max(1, math.floor(size / budget * scale)) / scale
    return f"{min(ratio, MAX_RATIO):.{_DIGITS}f}"
