"""What is known of torch on a Mac: its releases, operations and PYTORCH_* variables. Pure.

Which macOS and dtypes go with a release is in `agent/mps_support`, which a worker reads too.
All of it was read from the wheels and the sources; nothing here was measured on a Mac.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mpsbar.agent.secrets import MASK, mask
from mpsbar.core.findings import Reason, Value
from mpsbar.core.naming import printable

Release = tuple[int, int]  # (2, 13)

RECOMMENDED: Release = (2, 1)
CURRENT: Release = (2, 13)  # for an older release a newer one is advised
# From here on torch raises when a command buffer failed on MPS.
RAISES_ON_MPS: Release = (2, 15)
# Operations of the probe that MPS got in a later release than the dtype itself.
LATER_ON_MPS: dict[tuple[str, str], Release] = {
    ("autocast", "float16"): (2, 5), ("autocast", "bfloat16"): (2, 6),
}  # fmt: skip
# matmul with a reduction dimension above 32768 reads past it on M1 and M2 (pytorch #193487).
LONG_MATMUL: tuple[Release, Release] = ((2, 7), (2, 13))
LAST_FOR_INTEL = "2.2.2"


@dataclass(frozen=True, slots=True)
class _Newest:
    version: str
    macos: tuple[int, int]
    python: tuple[int, int]


_NEWEST = (_Newest("2.15.0", (15, 0), (3, 11)), _Newest("2.14.1", (14, 0), (3, 10)))


def parse_release(version: str | None) -> Release | None:
    """Returns the first two numbers of a version, such as 2.13.0+cpu or 2.4.0a0+git1a2b."""
    match = re.match(r"(\d{1,4})\.(\d{1,4})(?!\d)", version or "")
    return (int(match[1]), int(match[2])) if match else None


def parse_numbers(version: str | None) -> tuple[int, ...] | None:
    """Returns the numbers of a version, such as (26, 3, 2) for 26.3.2; None for anything else."""
    match = re.fullmatch(r"\d{1,4}(\.\d{1,4}){0,3}", version or "")
    return tuple(map(int, match[0].split("."))) if match else None


def newest_for(
    macos: tuple[int, ...] | None, python: tuple[int, ...] | None, architecture: str | None
) -> str | None:
    """Returns the newest release that installs here and has MPS; None if that is not known."""
    if macos is None or python is None or architecture != "arm64":
        return None
    fits = (n.version for n in _NEWEST if macos >= n.macos and python >= n.python)
    return next(fits, None)


def package_for(macos: tuple[int, ...] | None, python: tuple[int, ...] | None) -> str | None:
    """Returns what pip is to install for the newest release with MPS; None if there is none.

    pip chooses by Python and lets a release without MPS on this macOS be installed too.
    """
    newest, before = _NEWEST
    if (python is not None and python < before.python) or (macos and macos < before.macos[:1]):
        return None
    if macos and macos >= newest.macos[:1]:
        return "torch"
    least, most = CURRENT, parse_release(newest.version)
    assert most is not None
    return f"torch>={least[0]}.{least[1]},<{most[0]}.{most[1]}"


def chip_generation(chip: str | None) -> int | None:
    """Returns the generation of an M chip, such as 2 for Apple M2 Pro; None for any other chip."""
    match = re.match(r"Apple M(\d{1,2})\b", chip or "")
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class NativeOperations:
    """Since which torch an operation has a kernel of its own on MPS.

    The list is in resources/mps-operations.json: made from native_functions.yaml, which every wheel
    of torch has, of the releases 2.2 to 2.15 for macOS. tests/system/test_native_operations.py says
    how.
    """

    since: Mapping[str, Release]  # by the operation's name without aten::
    newest: Release  # the newest release that was looked at

    def find(self, operation: str) -> Release | None:
        """Returns the first release that has it; None: no release up to `newest`."""
        return self.since.get(operation.removeprefix("aten::"))


def parse_native_operations(text: str) -> NativeOperations:
    table = json.loads(text)
    since = {
        name: release
        for version, names in table["since"].items()
        if (release := parse_release(version)) is not None
        for name in names
    }
    return NativeOperations(since, parse_release(table["newest"]) or (0, 0))


FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"
HIGH = "PYTORCH_MPS_HIGH_WATERMARK_RATIO"
LOW = "PYTORCH_MPS_LOW_WATERMARK_RATIO"
PREFER_METAL = "PYTORCH_MPS_PREFER_METAL"
FAST_MATH = "PYTORCH_MPS_FAST_MATH"
KNOWN_SETTINGS = (
    FALLBACK, HIGH, LOW, PREFER_METAL, FAST_MATH, "PYTORCH_MPS_DISABLE_PREFILL_ATTENTION",
    "PYTORCH_MPS_LOG_PROFILE_INFO", "PYTORCH_MPS_TRACE_SIGNPOSTS", "PYTORCH_DEBUG_MPS_ALLOCATOR",
)  # fmt: skip

_DEFAULT_HIGH, _DEFAULT_LOW = 1.7, 1.4
MAX_RATIO = 2.0
# A number as C's strtod reads it: its longest prefix, or 0. "0,8" is 0, which means no limit.
_NUMBER = re.compile(
    r"\s*([+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan))",
    re.ASCII | re.IGNORECASE,
)
_WHOLE = re.compile(r"\s*[+-]?\d{1,18}", re.ASCII)
_MAX_UNKNOWN = 10


def mask_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns torch's variables: known ones with their values, others by name alone."""
    return {
        name: mask(value) if name in KNOWN_SETTINGS else MASK
        for name, value in variables.items()
        if name.startswith("PYTORCH_")
    }


def judge_settings(settings: Mapping[str, str], torch_version: str | None) -> tuple[Reason, ...]:
    """Returns which variables do harm, nothing, or not what they say.

    Only the environment at the start of a process counts: PYTORCH_ENABLE_MPS_FALLBACK is read when
    torch is loaded, the watermarks when MPS is used first.
    """
    return (
        *_judge_fallback(settings),
        *(tuple(_judge_watermarks(settings)) or _note_watermarks(settings)),
        *_judge_switches(settings),
        *_judge_unknown(settings, torch_version),
    )


def is_fallback_on(settings: Mapping[str, str]) -> bool:
    """Returns whether it is certainly on; releases differ on a value that is no number."""
    number = _WHOLE.match(settings.get(FALLBACK, ""))
    return number is not None and int(number[0]) != 0


def _judge_fallback(settings: Mapping[str, str]) -> Iterator[Reason]:
    value = settings.get(FALLBACK)
    if value is not None and _WHOLE.match(value) is None:
        # Older releases raise an error, 2.13 reads it as "on".
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
    if not 0 <= high <= MAX_RATIO:
        yield Reason("watermark_out_of_range", "critical", _named(HIGH, settings[HIGH]))
        return
    if high == 0:
        yield Reason("watermark_unlimited", "warning")
    yield from _judge_low(settings, high or MAX_RATIO)


def _note_watermarks(settings: Mapping[str, str]) -> tuple[Reason, ...]:
    """Names watermarks that are valid: they can still be set too late."""
    names = " ".join(
        f"{name}={printable(settings[name], 80)}" for name in (HIGH, LOW) if name in settings
    )
    return (Reason("watermarks_set", "ok", {"settings": names}),) if names else ()


def _judge_low(settings: Mapping[str, str], high: float) -> Iterator[Reason]:
    low = _read_number(settings[LOW]) if LOW in settings else _DEFAULT_LOW
    if not 0 <= low <= MAX_RATIO:
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
    """Reports unknown names; KNOWN_SETTINGS is of torch 2.13, a newer one may know more."""
    release = parse_release(torch_version)
    unknown = [n for n in sorted(settings) if "MPS" in n and n not in KNOWN_SETTINGS]
    for name in unknown[:_MAX_UNKNOWN]:
        import difflib  # imported late: for mistakes only

        shown = printable(name, 80)
        near = difflib.get_close_matches(name[:80], KNOWN_SETTINGS, 1, 0.75)
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
