"""This computer and its GPU in words: for the menu, status, top, doctor and the report."""

from dataclasses import fields

from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Machine
from mpsbar.language import _
from mpsbar.ui.text import wording


def describe_pressure(level: str | None) -> str:
    levels = {"normal": _("normal"), "warning": _("warning"), "critical": _("critical")}
    return _("pressure {level}").format(level=levels.get(level or "", wording.UNKNOWN))


def describe_machine(this: Machine) -> str:
    """Returns one line, such as Apple M3 Max · 36.0 GB · pressure normal · 12.1 GB available."""
    words = [describe_machine_briefly(this)]
    if this.memory_available is not None:
        words.append(_("{size} available").format(size=wording.size(this.memory_available)))
    if this.swap_used:
        words.append(_("{size} swap used").format(size=wording.size(this.swap_used)))
    return " · ".join(words)


def describe_machine_briefly(this: Machine) -> str:
    """Returns a line for a menu, such as Apple M3 Max · 36.0 GB · pressure normal."""
    words = [
        this.chip or this.model or this.os or _("this computer"),
        wording.size(this.memory_total),
    ]
    words.append(describe_pressure(this.pressure))
    if this.recording is not None:
        words.append(_("RECORDED"))
    return " · ".join(words)


def describe_gpu(this: Gpu) -> str:
    """Returns one line, empty where nothing can be read of a GPU. core/gpu names its parts."""
    parts = [(part, getattr(this, part.name)) for part in fields(this) if part.metadata]
    if all(value is None for _part, value in parts):
        return ""
    words = []
    for part, value in parts:
        if part.name == "memory_in_use" and this.memory_budget is not None:
            words.append(wording.part(value, this.memory_budget))
        else:
            text, unit = part.metadata["text"], part.metadata["unit"]
            words.append(_(text).format(value=_write(value, unit)))
    return " · ".join(words)


def _write(value: float | None, unit: str) -> str:
    if unit == "percent":
        return wording.percent(value)
    if unit == "bytes":
        return wording.size(None if value is None else int(value))
    return wording.UNKNOWN if value is None else f"{value:g}"
