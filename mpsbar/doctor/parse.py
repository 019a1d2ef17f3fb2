"""Parses the answers of the doctor's child process, which are not trusted, to a Device. Pure."""

import sys
from typing import Any

from mpsbar.core.dtype_results import find_complaint, parse_number, parse_text
from mpsbar.core.signals import name_exit
from mpsbar.core.torch_facts import mask_settings, parse_numbers
from mpsbar.doctor.rules import STAGES, Device, InspectionEnd

_LONGEST_TEXT = 1000
_MAX_ITEMS = 100  # settings, dtypes

Answer = dict[str, Any]
Stages = dict[str, Answer]


def parse_device(python: str, answers: list[Answer], tail: bytes, code: int | None) -> Device:
    """`tail` is the end of what it wrote to stderr, `code` its exit code (None: it hung)."""
    stages = _parse_stages(answers)
    ended = _parse_end(stages, code)
    stage = next((name for name in STAGES if name not in stages), None)
    errors = [_error(stages, name) for name in ("torch", "import")]
    is_fine = ended in ("ok", "no_torch")
    return Device(
        python=python,
        ended=ended,
        stage=stage if ended in ("crashed", "exited", "hung") else None,
        signal=name_exit(code, sys.platform) if code is not None and ended == "crashed" else None,
        error=None if is_fine else find_complaint(errors, tail, most=_LONGEST_TEXT),
        **_parse_python(stages),
        **_parse_torch(stages),
        **_parse_devices(stages),
    )


def _parse_python(stages: Stages) -> dict[str, Any]:
    answer = stages.get("python", {})
    words = ("version", "implementation", "architecture", "system", "prefix")
    return {
        **{name: _optional(answer.get(name)) for name in words},
        "os_version": parse_numbers(_optional(answer.get("os_version"))),
        "translated": _flag(answer.get("translated")),
        "settings": _parse_settings(answer.get("settings")),
    }


def _parse_torch(stages: Stages) -> dict[str, Any]:
    installed, loaded = stages.get("torch", {}), stages.get("import", {})
    return {
        "torch": _optional(loaded.get("version")) or _optional(installed.get("version")),
        "torch_file": _optional(installed.get("file")),
        "torch_preloaded": _flag(installed.get("preloaded")),
        "cuda": _optional(loaded.get("cuda")),
        "hip": _optional(loaded.get("hip")),
        "mps_built": _flag(stages.get("built", {}).get("mps")),
    }


def _parse_devices(stages: Stages) -> dict[str, Any]:
    available = stages.get("available", {})
    return {
        "mps_available": _flag(available.get("mps")),
        "cuda_available": _flag(available.get("cuda")),
        "mps_error": _optional(available.get("mps_error")),
        "cuda_error": _optional(available.get("cuda_error")),
        "chosen": _optional(stages.get("chosen", {}).get("device")),
        "computed": parse_number(stages.get("computed", {}).get("sum")),
        "compute_error": _error(stages, "computed"),
        "dtypes": _parse_dtypes(stages.get("capability", {}).get("dtypes")),
    }


def _parse_stages(answers: list[Answer]) -> Stages:
    """Keeps the first answer of each stage."""
    stages: Stages = {}
    for answer in answers:
        if isinstance(answer.get("stage"), str):
            stages.setdefault(answer["stage"], answer)
    return stages


def _parse_end(stages: Stages, code: int | None) -> InspectionEnd:
    if "end" in stages and "python" in stages:  # what happened afterwards does not matter
        if stages.get("torch", {}).get("found") is False:
            return "no_torch"
        return "ok" if "built" in stages else "broken_torch"
    if code is None:
        return "hung"
    if code < 0:
        return "crashed"
    return "exited" if "python" in stages else "not_python"


def _parse_settings(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return mask_settings({_text(k): _text(v) for k, v in list(value.items())[:_MAX_ITEMS]})


def _parse_dtypes(value: Any) -> tuple[str, ...] | None:
    return tuple(map(_text, value[:_MAX_ITEMS])) if isinstance(value, list) else None


def _error(stages: Stages, stage: str) -> str | None:
    return _optional(stages.get(stage, {}).get("error"))


def _text(value: object) -> str:
    return parse_text(str(value), _LONGEST_TEXT) or ""


def _optional(value: Any) -> str | None:
    return parse_text(value, _LONGEST_TEXT)


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
