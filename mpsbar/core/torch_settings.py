"""The PYTORCH_* variables of a process: which of them do harm, nothing, or not what they say. Pure.

Only what a process was started with counts: PYTORCH_ENABLE_MPS_FALLBACK is read when torch is
loaded, the watermarks when MPS is used first.
"""

import difflib
import math
import re
from collections.abc import Iterator, Mapping

from mpsbar.core.findings import Reason, Value
from mpsbar.core.naming import printable
from mpsbar.core.torch_releases import CURRENT, parse_release

FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"
HIGH = "PYTORCH_MPS_HIGH_WATERMARK_RATIO"
LOW = "PYTORCH_MPS_LOW_WATERMARK_RATIO"
PREFER_METAL = "PYTORCH_MPS_PREFER_METAL"
FAST_MATH = "PYTORCH_MPS_FAST_MATH"
KNOWN = (
    FALLBACK, HIGH, LOW, PREFER_METAL, FAST_MATH, "PYTORCH_MPS_DISABLE_PREFILL_ATTENTION",
    "PYTORCH_MPS_LOG_PROFILE_INFO", "PYTORCH_MPS_TRACE_SIGNPOSTS", "PYTORCH_DEBUG_MPS_ALLOCATOR",
)  # fmt: skip

_DEFAULT_HIGH, _DEFAULT_LOW = 1.7, 1.4
_UPPER_BOUND = 2.0
# As C reads a number: as far as it goes, and 0 where there is none. "0,8" is 0, which is no limit.
_NUMBER = re.compile(
    r"\s*([+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan))",
    re.ASCII | re.IGNORECASE,
)
_WHOLE = re.compile(r"\s*[+-]?\d{1,18}", re.ASCII)
_MOST_UNKNOWN = 10


def judge_settings(settings: Mapping[str, str], torch_version: str | None) -> tuple[Reason, ...]:
    """What is to be said about them, in the order of torch's own list."""
    return (
        *_judge_fallback(settings),
        *(tuple(_judge_watermarks(settings)) or _note_watermarks(settings)),
        *_judge_switches(settings),
        *_judge_unknown(settings, torch_version),
    )


def is_fallback_on(settings: Mapping[str, str]) -> bool:
    """Surely; what is no number is unclear."""
    number = _WHOLE.match(settings.get(FALLBACK, ""))
    return number is not None and int(number[0]) != 0


def _judge_fallback(settings: Mapping[str, str]) -> Iterator[Reason]:
    value = settings.get(FALLBACK)
    if value is not None and _WHOLE.match(value) is None:
        # Older releases stop at it, 2.13 takes it for "on".
        yield Reason("fallback_unclear", "warning", _named(FALLBACK, value))
    elif is_fallback_on(settings):
        yield Reason("fallback_on", "ok")


def _judge_watermarks(settings: Mapping[str, str]) -> Iterator[Reason]:
    for name in (HIGH, LOW):
        if name in settings and not _is_number(settings[name]):
            read = f"{_read_number(settings[name]):g}"
            values = {**_named(name, settings[name]), "read": read}
            yield Reason("watermark_no_number", "warning", values)
    high = _read_number(settings[HIGH]) if HIGH in settings else _DEFAULT_HIGH
    if not 0 <= high <= _UPPER_BOUND:
        yield Reason("watermark_out_of_range", "critical", _named(HIGH, settings[HIGH]))
        return
    if high == 0:
        yield Reason("watermark_unlimited", "warning")
    yield from _judge_low(settings, high or _UPPER_BOUND)


def _note_watermarks(settings: Mapping[str, str]) -> tuple[Reason, ...]:
    """They are right; what can still be wrong is when they are set."""
    names = " ".join(
        f"{name}={printable(settings[name], 80)}" for name in (HIGH, LOW) if name in settings
    )
    return (Reason("watermarks_set", "ok", {"settings": names}),) if names else ()


def _judge_low(settings: Mapping[str, str], high: float) -> Iterator[Reason]:
    low = _read_number(settings[LOW]) if LOW in settings else _DEFAULT_LOW
    if not 0 <= low <= _UPPER_BOUND:
        yield Reason("watermark_out_of_range", "critical", _named(LOW, settings[LOW]))
    elif low > high:
        code = "watermark_low_above_high" if LOW in settings else "watermark_high_alone"
        yield Reason(code, "critical", {"low": low, "high": high})


def _judge_switches(settings: Mapping[str, str]) -> Iterator[Reason]:
    metal = settings.get(PREFER_METAL)
    if metal is not None and metal.strip().lower() in ("", "0", "false", "off", "no"):
        yield Reason("prefer_metal_not_off", "warning", _named(PREFER_METAL, metal))
    elif metal is not None:
        yield Reason("prefer_metal_on", "ok")
    if settings.get(FAST_MATH, "0") not in ("", "0"):
        yield Reason("fast_math_on", "ok")


def _judge_unknown(settings: Mapping[str, str], torch_version: str | None) -> Iterator[Reason]:
    """The list of names is that of 2.13: what a newer torch has is not a mistake for being new."""
    release = parse_release(torch_version)
    unknown = [n for n in sorted(settings) if "MPS" in n and n not in KNOWN]
    for name in unknown[:_MOST_UNKNOWN]:
        shown = printable(name, 80)
        near = difflib.get_close_matches(name[:80], KNOWN, 1, 0.75)
        if near:
            yield Reason("setting_misspelt", "warning", {"name": shown, "near": near[0]})
        elif release is not None and release <= CURRENT:
            yield Reason("setting_unknown", "ok", {"name": shown})


def _is_number(text: str) -> bool:
    match = _NUMBER.match(text)
    return match is not None and not text[match.end() :].strip()


def _read_number(text: str) -> float:
    match = _NUMBER.match(text)
    value = float(match[1]) if match else 0.0
    return -1.0 if math.isnan(value) else value


def _named(name: str, value: str) -> dict[str, Value]:
    return {"name": name, "value": printable(value, 80)}
