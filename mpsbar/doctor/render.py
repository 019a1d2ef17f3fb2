"""Renders the output of `mpsbar doctor`, for people or as JSON of schema 1. Pure."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from mpsbar.core.findings import Reason
from mpsbar.core.machine import Machine, Problem
from mpsbar.core.naming import printable
from mpsbar.doctor.rules import COMPUTED, Device, DoctorReport
from mpsbar.doctor.text import sentence
from mpsbar.language import _, ngettext
from mpsbar.ui.text import cells, wording
from mpsbar.ui.text.alerts import say_delivery
from mpsbar.ui.text.startup import say_doubt, say_no_icon
from mpsbar.ui.text.status_json import build_machine

_LONGEST_LINE = 200
_LONGEST_PATH = 4096


def render_doctor(report: DoctorReport, home: str | None = None) -> str:
    """The findings for people; `home` is shown as ~ everywhere."""
    lines = [_render_machine(report.machine)]
    lines += map(_render_problem, report.problems)
    lines += _render_icon(report)
    lines += _render_alerts(report)
    with_torch = [pair for pair in report.pythons if pair[0].ended != "no_torch"]
    for device, reasons in with_torch:
        lines += ["", *_render_python(device), *_render_reasons(reasons)]
    for process, reasons in report.processes:
        title = f"{printable(process.name)} ({process.pid})"
        lines += ["", title, *_render_reasons(reasons)]
    lines += _render_rest(report)
    text = "\n".join([*lines, "", _render_summary(report)])
    return wording.shorten_home(text, home)


def _render_problem(problem: Problem) -> str:
    text = printable(problem.text)
    if problem.reader in ("own use", "metrics"):  # a sentence about mpsbar itself
        return text
    return _("couldn't read {reader}: {text}").format(reader=problem.reader, text=text)


def build_doctor_json(report: DoctorReport) -> dict[str, Any]:
    """The findings as JSON of schema 1; every value may be null, fields are only added."""
    return {
        "schema": 1,
        "machine": build_machine(report.machine),
        "pythons": [
            {**_build_device(device), "reasons": _build_reasons(reasons)}
            for device, reasons in report.pythons
        ],
        "processes": [
            {"pid": process.pid, "name": process.name, "reasons": _build_reasons(reasons)}
            for process, reasons in report.processes
        ],
        "problems": [asdict(problem) for problem in report.problems],
        "left_out": list(report.left_out),
        "icon": None if report.icon is None else asdict(report.icon),
        "alerts": None if report.alerts is None else asdict(report.alerts),
    }


def _render_icon(report: DoctorReport) -> list[str]:
    """Renders lines about the menu bar icon; none where there never was one."""
    lines = [] if report.no_icon is None else [say_no_icon(report.no_icon)]
    if report.icon is not None:
        when = datetime.fromtimestamp(report.icon.time).astimezone().strftime("%Y-%m-%d %H:%M")
        icon = say_doubt(report.icon.doubt) or _("The menu bar icon is shown")
        lines.append(_("{icon} (last checked {when})").format(icon=icon, when=when))
    return lines


def _render_alerts(report: DoctorReport) -> list[str]:
    """Renders a line with what to do where it is not certain that alerts are shown."""
    if report.alerts is None or report.alerts.delivery in ("shown", "unknown"):
        return []
    return [say_delivery(report.alerts.delivery)]


def render_progress(done: int, total: int) -> str:
    text = ngettext("checking {n} Python: {done} done", "checking {n} Pythons: {done} done", total)
    return text.format(n=total, done=done)


def _render_machine(machine: Machine) -> str:
    memory = None if machine.memory_total is None else wording.size(machine.memory_total)
    virtual = _("virtual machine") if machine.is_virtual else None
    recorded = _("RECORDED") if machine.recording is not None else None
    chip = machine.chip or machine.gpu.name
    parts = (chip, machine.model, memory, machine.os, virtual, recorded)
    return " · ".join(part for part in parts if part) or _("no information about this computer")


def _render_python(device: Device) -> list[str]:
    facts = (
        device.version and f"Python {device.version}",
        device.architecture,
        device.torch and f"torch {device.torch}",
        _render_mps(device),
    )
    settings = " ".join(f"{name}={value}" for name, value in device.settings.items())
    details = (" · ".join(fact for fact in facts if fact), settings)
    return [_path(device), *(f"  {cells.cut_middle(d, _LONGEST_LINE)}" for d in details if d)]


def _path(device: Device) -> str:
    return printable(device.python, _LONGEST_PATH)


def _render_mps(device: Device) -> str | None:
    if device.mps_available:
        return _("MPS available")
    if device.mps_built is None:
        return None
    return _("MPS built, not available") if device.mps_built else _("MPS not built")


def _render_reasons(reasons: Sequence[Reason]) -> list[str]:
    labels = {"ok": _("note"), "warning": _("warning"), "critical": _("critical")}
    width = max(map(cells.width, labels.values()))
    return [f"  {cells.pad(labels[reason.level], width)}  {sentence(reason)}" for reason in reasons]


def _render_rest(report: DoctorReport) -> list[str]:
    without = [device for device, _reasons in report.pythons if device.ended == "no_torch"]
    lines = [
        _("{python}: Python {version}, no torch").format(
            python=_path(device), version=device.version or wording.UNKNOWN
        )
        for device in without
    ]
    if report.left_out:
        text = ngettext(
            "{n} more Python was not checked; use --python PATH to check it",
            "{n} more Pythons were not checked; use --python PATH to check one",
            len(report.left_out),
        )
        lines.append(text.format(n=len(report.left_out)))
    return ["", *lines] if lines else []


def _render_summary(report: DoctorReport) -> str:
    number = len(report.torch_problems)
    if number:
        return ngettext("{n} problem found.", "{n} problems found.", number).format(n=number)
    if all(device.ended == "no_torch" for device, _reasons in report.pythons):
        return _("No torch was found. To check a specific Python: mpsbar doctor --python PATH")
    return _("No other problems found.") if report.problems else _("No problems found.")


def _build_device(device: Device) -> dict[str, Any]:
    works = None if device.computed is None else device.computed == COMPUTED
    return {
        **{name: value for name, value in asdict(device).items() if name != "computed"},
        "works": False if device.compute_error is not None else works,
    }


def _build_reasons(reasons: Sequence[Reason]) -> list[dict[str, Any]]:
    return [
        {"code": r.code, "level": r.level, "values": r.values, "text": sentence(r)} for r in reasons
    ]
