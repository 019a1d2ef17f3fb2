"""From what the doctor's throwaway said to a Device. Pure; it is somebody's Python: not trusted."""

import signal
from typing import Any

from mpsbar.core.naming import printable
from mpsbar.core.torch_releases import parse_numbers
from mpsbar.doctor.rules import STAGES, Device, Ended

_LONGEST_TEXT = 1000
_MOST = 100  # settings, dtypes

Answer = dict[str, Any]
Stages = dict[str, Answer]


def parse_device(python: str, answers: list[Answer], tail: bytes, code: int | None) -> Device:
    """From its answers, what it wrote to stderr last and its exit code (None: hung)."""
    told = _parse_stages(answers)
    ended = _parse_end(told, code)
    stage = next((name for name in STAGES if name not in told), None)
    errors = [_error(told, name) for name in ("torch", "import")]
    complaint = next(filter(None, errors), None) or _last_line(tail)
    return Device(
        python=python,
        ended=ended,
        stage=stage if ended in ("crashed", "exited", "hung") else None,
        signal=_signal_name(code) if ended == "crashed" else None,
        error=None if ended in ("ok", "no_torch") else complaint,
        **_parse_python(told),
        **_parse_torch(told),
        **_parse_devices(told),
    )


def _parse_python(told: Stages) -> dict[str, Any]:
    answer = told.get("python", {})
    words = ("version", "implementation", "architecture", "system", "prefix")
    return {
        **{name: _optional(answer.get(name)) for name in words},
        "os_version": parse_numbers(_optional(answer.get("os_version"))),
        "translated": _flag(answer.get("translated")),
        "settings": _parse_settings(answer.get("settings")),
    }


def _parse_torch(told: Stages) -> dict[str, Any]:
    found, loaded = told.get("torch", {}), told.get("import", {})
    return {
        "torch": _optional(loaded.get("version")) or _optional(found.get("version")),
        "torch_file": _optional(found.get("file")),
        "torch_preloaded": _flag(found.get("preloaded")),
        "cuda": _optional(loaded.get("cuda")),
        "hip": _optional(loaded.get("hip")),
        "mps_built": _flag(told.get("built", {}).get("mps")),
    }


def _parse_devices(told: Stages) -> dict[str, Any]:
    available = told.get("available", {})
    return {
        "mps_available": _flag(available.get("mps")),
        "cuda_available": _flag(available.get("cuda")),
        "mps_error": _optional(available.get("mps_error")),
        "cuda_error": _optional(available.get("cuda_error")),
        "chosen": _optional(told.get("chosen", {}).get("device")),
        "computed": _number(told.get("computed", {}).get("sum")),
        "compute_error": _error(told, "computed"),
        "dtypes": _parse_dtypes(told.get("capability", {}).get("dtypes")),
    }


def _parse_stages(answers: list[Answer]) -> Stages:
    """By stage; the first answer of each counts."""
    stages: Stages = {}
    for answer in answers:
        if isinstance(answer.get("stage"), str):
            stages.setdefault(answer["stage"], answer)
    return stages


def _parse_end(told: Stages, code: int | None) -> Ended:
    if "end" in told and "python" in told:  # what came after does not matter
        if told.get("torch", {}).get("found") is False:
            return "no_torch"
        return "ok" if "built" in told else "broken_torch"
    if code is None:
        return "hung"
    if code < 0:
        return "crashed"
    return "exited" if "python" in told else "not_python"


def _signal_name(code: int | None) -> str | None:
    if code is None or code >= 0:
        return None
    try:
        return signal.Signals(-code).name
    except ValueError:
        return str(-code)


def _parse_settings(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {parse_text(k): parse_text(v) for k, v in list(value.items())[:_MOST]}


def _parse_dtypes(value: Any) -> tuple[str, ...] | None:
    return tuple(map(parse_text, value[:_MOST])) if isinstance(value, list) else None


def _error(told: Stages, stage: str) -> str | None:
    return _optional(told.get(stage, {}).get("error"))


def _last_line(tail: bytes) -> str | None:
    lines = tail.decode(errors="replace").strip().splitlines()
    return parse_text(lines[-1]) if lines else None


def _optional(value: Any) -> str | None:
    return parse_text(value) if isinstance(value, str) else None


def parse_text(value: object) -> str:
    """On one line: torch's longer sentences have several."""
    return printable(" ".join(str(value)[:_LONGEST_TEXT].split()), _LONGEST_TEXT)


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, float | int) else None
    except OverflowError:
        return None
