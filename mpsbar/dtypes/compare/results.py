"""The result of compare(): one object with text, HTML and JSON, made of plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from .checking import ModuleVerdict
from .measuring import Peak, Timing
from .render import render_html, render_text
from .structures import list_tensors
from .task import find_loss
from .text import build_headline, say_headline
from .tolerance import STEPS, Difference, find_errors
from .whole_run import WholeRun

_MAX_LISTED = 50


class Comparison:
    """What compare() found: print() shows it, a notebook draws it, to_json() is for programs."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @property
    def headline(self) -> str:
        """A sentence for each dtype, as print() words it; `to_dict()` has it in English."""
        return say_headline(self.data)

    def to_dict(self) -> dict[str, Any]:
        return self.data

    def to_json(self, indent: int | None = None) -> str:
        return json.dumps(self.data, indent=indent, allow_nan=False)

    def __str__(self) -> str:
        return render_text(self.data)

    def __repr__(self) -> str:
        return f"<mpsbar.Comparison: {self.headline}>"

    def _repr_html_(self) -> str:
        return render_html(self.data)


@dataclass
class DtypeResult:
    """What was found in one dtype, while it is gathered."""

    name: str
    whole: WholeRun | None = None
    culprits: list[ModuleVerdict] = field(default_factory=list)
    unchecked: list[ModuleVerdict] = field(default_factory=list)
    checked: int = 0
    unexplained: Difference | None = None
    gradients: dict[str, float] = field(default_factory=dict)
    missing_gradients: list[str] = field(default_factory=list)
    timing: Timing | None = None
    modules: dict[str, float] = field(default_factory=dict)
    peak: Peak = field(default_factory=Peak)
    notes: list[str] = field(default_factory=list)

    def take_verdicts(self, verdicts: Sequence[ModuleVerdict]) -> None:
        """Add verdicts; of each module only the first counts."""
        seen: set[tuple[str, str]] = set()
        for verdict in verdicts:
            if verdict.kind == "unchecked":
                self.unchecked.append(verdict)
            elif verdict.kind != "right" and (verdict.name, verdict.kind) not in seen:
                self.culprits.append(verdict)
                seen.add((verdict.name, verdict.kind))
        self.checked = len({verdict.name for verdict in verdicts if verdict.kind != "unchecked"})

    def take_gradients(self, right: dict[str, torch.Tensor], got: dict[str, torch.Tensor]) -> None:
        for name, wanted in right.items():
            if name not in got:
                self.missing_gradients.append(name)
                continue
            error, usual, missing = find_errors(got[name], wanted)
            self.gradients[name] = math.inf if missing else float(error.max()) / usual


def build_comparison(session: Any, targets: dict[str, Any]) -> Comparison:
    """Build the result of a finished run; every number is finite or None, as JSON requires."""
    data = {
        "schema": 1,
        "kind": "training" if session.task.is_training else "forward",
        "model": session.task.title,
        "parameters": session.state.count_parameters(),
        "modules": len(session.state.modules),
        "device": session.device,
        "torch": str(torch.__version__),
        "reference": {
            "device": "cpu", "dtype": str(session.reference.dtype).replace("torch.", ""),
            "seconds": session.cpu_timing.seconds if session.cpu_timing else None,
            "loss": _loss(session.output) if session.task.is_training else None,
        },
        "piecewise": session.piecewise,
        "steps": STEPS,
        "dtypes": {
            name: _build_dtype(session, session.results[name], target)
            for name, target in targets.items()
            if name in session.results
        },
        "slowest": _build_slowest(session),
        "notes": session.notes,
        "not_restored": session.not_restored,
    }  # fmt: skip
    data["headline"] = build_headline(data)
    return Comparison(_finite(data))


def _build_dtype(session: Any, result: DtypeResult, target: Any) -> dict[str, Any]:
    whole = result.whole or WholeRun()
    base = session.results.get("float32")
    cpu = session.cpu_timing
    return {
        "state": _find_state(result, whole),
        "eps": torch.finfo(target.precision).eps,
        "largest_number": torch.finfo(target.precision).max,
        "culprits": [_build_verdict(verdict) for verdict in result.culprits[:_MAX_LISTED]],
        "followers": _find_followers(result, whole, target),
        "raised": _pair(whole.raised, "text"),
        "not_run": _pair(whole.not_run, "text"),
        "out_of_memory": whole.is_out_of_memory,
        "nonfinite": _pair(whole.nonfinite, "what"),
        "fallbacks": [
            {"module": module, "operation": operation, "times": times}
            for (module, operation), times in whole.fallbacks.items()
        ],
        "output": _build_output(session.output, whole.output),
        "unexplained": asdict(result.unexplained) if result.unexplained else None,
        "loss": _loss(whole.output) if session.task.is_training else None,
        "gradients": _build_gradients(result) if session.task.is_training else None,
        "checked": result.checked,
        "unchecked": [{"module": v.name, "text": v.text} for v in result.unchecked[:_MAX_LISTED]],
        "seconds": result.timing.seconds if result.timing else None,
        "spread": result.timing.spread if result.timing else None,
        "runs": result.timing.runs if result.timing else None,
        "speed_to_float32": _speed(base.timing if base else None, result.timing),
        "speed_to_cpu": _speed(cpu, result.timing),
        "peak": result.peak.bytes,
        "peak_is_sampled": result.peak.is_sampled,
        "peak_to_float32": _share(result.peak.bytes, base.peak.bytes if base else None),
        "notes": result.notes,
    }


def _find_state(result: DtypeResult, whole: WholeRun) -> str:
    if whole.raised or any(verdict.kind == "raised" for verdict in result.culprits):
        return "raised"
    if whole.nonfinite or any(verdict.kind in ("NaN", "Inf") for verdict in result.culprits):
        return "nonfinite"
    if result.unexplained is not None and result.unexplained.nonfinite:
        return "nonfinite"
    if result.culprits or result.unexplained or result.missing_gradients:
        return "differs"
    return "unchecked" if whole.not_run else "works"


def _build_verdict(verdict: ModuleVerdict) -> dict[str, Any]:
    return {
        "module": verdict.name, "type": verdict.type, "kind": verdict.kind, "call": verdict.call,
        "text": verdict.text, "largest_right": verdict.largest_right,
        "difference": asdict(verdict.difference) if verdict.difference else None,
    }  # fmt: skip


def _find_followers(result: DtypeResult, whole: WholeRun, target: Any) -> list[str]:
    """Finds modules that differ in the whole run and agree alone: only their input was wrong."""
    if not any(verdict.kind in ("differs", "NaN", "Inf") for verdict in result.culprits):
        return []
    least = max(
        (v.difference.tolerance or 0.0 for v in result.culprits if v.difference), default=0.0
    )
    least = max(least, STEPS * torch.finfo(target.precision).eps)
    culprit_names = {verdict.name for verdict in result.culprits}
    return [
        name for name, error in whole.errors.items() if error > least and name not in culprit_names
    ]


def _build_output(right: Any, got: Any) -> dict[str, Any] | None:
    """Finds the worst of all outputs, and how often the largest score is of the same class."""
    errors = [
        (float(error.max()) / usual, float(error.median()) / usual)
        for g, r in zip(list_tensors(got), list_tensors(right))
        if g.shape == r.shape and r.is_floating_point() and r.numel()
        for error, usual, missing in [find_errors(g, r)]
        if not missing
    ]
    if not errors:
        return None
    largest, typical = max(errors)
    return {"largest": largest, "typical": typical, "same_top1": _same_top1(right, got)}


def _same_top1(right: Any, got: Any) -> float | None:
    """Compares scores of classes: `logits`, or a single output with a row for each example."""
    pairs = [_find_logits(value) for value in (right, got)]
    if not all(isinstance(value, torch.Tensor) for value in pairs):
        return None
    wanted, actual = pairs
    named = wanted is not right
    if not wanted.is_floating_point() or wanted.shape != actual.shape or wanted.dim() < 2:
        return None
    if wanted.shape[-1] < 2 or not (named or wanted.dim() == 2):
        return None
    return float((wanted.argmax(-1) == actual.argmax(-1)).double().mean())


def _find_logits(value: Any) -> Any:
    """Returns the logits of a ModelOutput or a dictionary; else the value itself."""
    if isinstance(value, dict) and "logits" in value:
        return value["logits"]
    return getattr(value, "logits", value)


def _build_gradients(result: DtypeResult) -> dict[str, Any]:
    worst = max(result.gradients, key=lambda name: result.gradients[name], default=None)
    return {
        "compared": len(result.gradients),
        "worst": worst,
        "largest": result.gradients[worst] if worst is not None else None,
        "missing": result.missing_gradients[:_MAX_LISTED],
    }


def _build_slowest(session: Any) -> list[dict[str, Any]]:
    """Lists the modules without submodules with their times, the slowest first."""
    leaves = {name: m for m, name in session.state.names.items() if not any(m.children())}
    rows = []
    for name, module in leaves.items():
        seconds = {"cpu": session.cpu_modules.get(name)}
        seconds.update({d: result.modules.get(name) for d, result in session.results.items()})
        if any(value is not None for value in seconds.values()):
            rows.append({"module": name, "type": type(module).__name__, "seconds": seconds})
    rows.sort(key=lambda row: -max(value or 0.0 for value in row["seconds"].values()))
    return rows[:_MAX_LISTED]


def _speed(base: Timing | None, timing: Timing | None) -> float | None:
    return base.seconds / timing.seconds if base and timing and timing.seconds else None


def _share(part: int | None, whole: int | None) -> float | None:
    return part / whole if part and whole else None


def _pair(value: tuple[str, str] | None, word: str) -> dict[str, str] | None:
    return None if value is None else {"module": value[0], word: value[1]}


def _loss(output: Any) -> float | None:
    loss = find_loss(output)
    return None if loss is None else float(loss.detach())


def _finite(value: Any) -> Any:
    """Replaces infinity and NaN, which JSON does not have, by None."""
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
