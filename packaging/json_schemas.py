"""The JSON that mpsbar prints, as JSON Schema (2020-12), made from the dataclasses behind it.

A field's comment in the source becomes its description. What is put together by hand in the code is
put together by hand here too; tests/cli/test_json_schema.py validates real output strictly, so that
neither a missing nor an additional field goes unnoticed.
"""

import dataclasses
import inspect
import json
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from mpsbar.core import dtype_results
from mpsbar.core.actions import Freed, Limited
from mpsbar.core.counters import COUNTERS, SENT
from mpsbar.core.counters import Counter as AllocatorCounter
from mpsbar.core.events import EndedProcess
from mpsbar.core.fallbacks import FallbackOperation
from mpsbar.core.findings import Advice, Level, Reason, Value
from mpsbar.core.host_readings import EndInWords
from mpsbar.core.machine import DeliveryCheck, FootprintKind, IconCheck, Machine, Problem, Process
from mpsbar.core.progress import RunProgress
from mpsbar.core.snapshot import WorkerState
from mpsbar.core.verdicts import EndVerdict
from mpsbar.doctor.rules import Device
from mpsbar.dtypes.deep_results import DeepCell, DeepProbe, News
from mpsbar.dtypes.verdicts import Change, Support

Schema = dict[str, Any]
# In the JSON a description stands behind its type, as in the source.
_PLAIN: dict[Any, str] = {
    int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null",
}  # fmt: skip
# Behind a field, or on the line above it where there is no room.
_COMMENT = re.compile(r"^    (\w+): .*?  # (.+)$", re.MULTILINE)
_ABOVE = re.compile(r"^    # (.+)\n    (\w+): ", re.MULTILINE)
_IN_JSON = {"None": "null", "True": "true", "False": "false"}
_WORDS = re.compile(rf"\b({'|'.join(_IN_JSON)})\b")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Schemas:
    """Translates types, and collects the definitions of one file meanwhile."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}

    def of(self, hint: Any) -> Schema:
        """Returns the schema of what asdict() and json make of a type; a dict is one already."""
        if isinstance(hint, dict):
            return hint
        if hint is Any:
            return {}
        if hint in _PLAIN:
            return {"type": _PLAIN[hint]}
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return {**self.of(arguments[0]), "description": arguments[1]}
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin in (Union, types.UnionType):
            return self.either(*arguments)
        if origin in (tuple, list):
            return self._array(arguments)
        if origin in (dict, Mapping):
            return self.map_of(arguments[1])
        return self._define(hint)

    def _array(self, items: Sequence[Any]) -> Schema:
        if len(items) == 1 or items[-1] is Ellipsis:
            return self.list_of(items[0])
        fixed = [self.of(item) for item in items]
        return {"type": "array", "prefixItems": fixed, "minItems": len(fixed), "items": False}

    def object_of(self, fields: Mapping[str, Any], optional: Mapping[str, Any] = {}) -> Schema:
        return {
            "type": "object",
            "properties": {name: self.of(hint) for name, hint in {**fields, **optional}.items()},
            "required": list(fields),
        }

    def list_of(self, item: Any, text: str = "") -> Schema:
        return _describe({"type": "array", "items": self.of(item)}, text)

    def map_of(self, value: Any, text: str = "") -> Schema:
        return _describe({"type": "object", "additionalProperties": self.of(value)}, text)

    def either(self, *hints: Any) -> Schema:
        parts = [self.of(hint) for hint in hints]
        if all(set(part) == {"type"} for part in parts):
            return {"type": [part["type"] for part in parts]}
        return {"anyOf": parts}

    def or_null(self, hint: Any, text: str = "") -> Schema:
        return _describe(self.either(hint, None.__class__), text)

    def _define(self, kind: Any) -> Schema:
        name = kind.__name__
        if name not in self.definitions:
            made = self.object_of(read_fields(kind))
            text = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
            # What dataclass() itself writes where there is no docstring says nothing.
            self.definitions[name] = _describe(made, "" if text.startswith(f"{name}(") else text)
        return {"$ref": f"#/$defs/{name}"}


def _describe(schema: Schema, text: str) -> Schema:
    return {**schema, "description": text} if text else schema


def read_fields(kind: Any, without: Sequence[str] = ()) -> dict[str, Any]:
    """The types of a dataclass's fields, those it inherits too, each with the comment behind it."""
    classes = [each for each in reversed(kind.__mro__) if dataclasses.is_dataclass(each)]
    source = "\n".join(map(inspect.getsource, classes))
    above = [(name, text.rstrip(".")) for text, name in _ABOVE.findall(source)]
    found = [*above, *_COMMENT.findall(source)]
    comments = {name: _WORDS.sub(lambda word: _IN_JSON[word[0]], text) for name, text in found}
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind) if field.name not in without]
    return {
        name: Annotated[hints[name], comments[name]] if name in comments else hints[name]
        for name in names
    }


def _read_counters(counters: Sequence[AllocatorCounter]) -> dict[str, Any]:
    return {c.name: Annotated[int | None, f"bytes: {c.meaning}"] for c in counters}


def _computer(s: Schemas) -> dict[str, Any]:
    """Returns what one computer tells of itself, here and over ssh."""
    backend = {"name": str, "framework": str, "state": str, **_read_counters(SENT)}
    worker = {
        "pid": int,
        "started": Annotated[float | None, "seconds since the epoch; identifies it with the pid"],
        "parent": int | None,
        "name": str,
        "command": list[str],
        "python": Annotated[str | None, "the interpreter"],
        "python_version": str | None,
        "framework": str | None,
        "framework_version": str | None,
        "device": str | None,
        "state": WorkerState,
        "age_s": Annotated[float | None, "seconds since these values were read; null: never"],
        "agent": Annotated[str | None, "the version of mpsbar in the process"],
        **_read_counters(COUNTERS),
        "cached_is_bound": Annotated[bool, "`cached` is only an upper bound (torch before 2.13)"],
        "footprint": Annotated[int | None, "bytes that the system charges the process"],
        "footprint_kind": FootprintKind | None,
        "footprint_peak": int | None,
        "gpu_percent": Annotated[float | None, "percent of one GPU, 0 to 100"],
        "progress": RunProgress | None,
        "settings": Annotated[
            dict[str, str] | None, "PYTORCH_* variables with which the process was started"
        ],
        "backends": s.list_of(s.object_of(backend), "its memory allocators"),
    }
    process = {
        **read_fields(Process),
        "framework": Annotated[str, "the first of `frameworks`"],
        "connected": Annotated[bool, "whether it is also listed in workers"],
    }
    return {
        "schema": Literal[1],
        "time": Annotated[float | None, "seconds since the epoch"],
        "machine": Machine,
        "workers": s.list_of(s.object_of(worker), "processes with an agent"),
        "processes": s.or_null(
            s.list_of(s.object_of(process)),
            "all that have a framework loaded; null: they could not be listed",
        ),
    }


def _probe_summary(s: Schemas) -> dict[str, Any]:
    surprise = {"code": str, "level": Level, "values": dict[str, Value], "text": str}
    verdict = {
        "verdict": Support,
        "why": str,
        "expected": Annotated[Support | None, "the least to expect of this torch"],
        "guides": Annotated[Support | None, "what guides say about it"],
        "torch_says": bool | None,
        "speed": Annotated[float | None, "relative to float32: 2 is twice as fast"],
    }
    return {
        "safe": Annotated[
            dict[str, bool], "by dtype: whether a script may use it; read by mpsbar.safe_dtype()"
        ],
        "headline": str,
        "surprises": s.list_of(s.object_of(surprise)),
        "verdicts": s.map_of(s.object_of(verdict), "by dtype"),
    }


def build_status(s: Schemas) -> Schema:
    names = ("python", "version", "torch", "os", "system", "device", "device_name", "time", "ended")
    kept = {n: hint for n, hint in read_fields(dtype_results.Probe).items() if n in names}
    return s.object_of(
        {
            **_computer(s),
            "health": s.object_of(
                {"level": Level, "reasons": list[str], "causes": list[Reason]}
            ),
            "advice": list[Advice],
            "dtypes": s.or_null(
                s.object_of({**kept, **_probe_summary(s)}), "the last probe; null: not probed yet"
            ),
            "problems": list[Problem],
            "gone": list[EndedProcess],
        }
    )  # fmt: skip


def build_status_hosts(s: Schemas) -> Schema:
    health = s.object_of({"level": Level | None, "reasons": list[str]})
    host = {
        "problem": Annotated[str | None, "why it does not answer"],
        "answered_at": Annotated[float | None, "when it last answered, seconds since the epoch"],
        "status": s.or_null(s.object_of({**_computer(s), "health": health})),
    }
    return _of_hosts(s, host)


def _of_hosts(s: Schemas, host: Mapping[str, Any]) -> Schema:
    hosts = s.map_of(s.object_of(host), "by the name that was given")
    return s.object_of({"schema": Literal[1], "hosts": hosts})


def build_probe(s: Schemas) -> Schema:
    check = {
        **read_fields(dtype_results.Check),
        "title": str,
        "issues": Annotated[list[int], "numbers of pytorch/pytorch, where it is reported"],
        "known_for": Annotated[str | None, "releases of torch"],
    }
    return s.object_of(
        {
            "schema": Literal[1],
            "kind": Literal["mpsbar probe"],
            **read_fields(dtype_results.Probe),
            "checks": s.list_of(s.object_of(check)),
            **_probe_summary(s),
            "headlines": list[str],
            "is_busy": bool,
            "changes": Annotated[list[Change] | None, "since the result of --against"],
        }
    )


def build_probe_deep(s: Schemas) -> Schema:
    cell = {**read_fields(DeepCell), "news": News | None}
    state = dtype_results.CellState
    change = {"operation": str, "dtype": str, "before": state, "after": state}
    subject = dict.fromkeys(("device", "machine", "torch", "system", "python"), str | None)
    return s.object_of(
        {
            "schema": Literal[1],
            "kind": Literal["mpsbar deep probe"],
            **read_fields(DeepProbe),
            "cells": s.list_of(s.object_of(cell)),
            "against": s.or_null(s.object_of({**subject, "time": float | None})),
            "changes": s.or_null(s.list_of(s.object_of(change)), "since the result of --against"),
        }
    )


def _fallbacks(s: Schemas) -> Schema:
    operation = {
        **read_fields(FallbackOperation),
        "native_since": Annotated[str | None, "first torch that has it on MPS"],
        "remedy": str | None,
    }
    return s.list_of(s.object_of(operation), "operations that fell back to the CPU")


def build_why(s: Schemas) -> Schema:
    end = {
        **read_fields(EndedProcess, without=("is_settled",)),
        "sentence": Annotated[str, "how it ended"],
        "next_steps": list[str],
    }
    with_verdict = {"certainty": str, "evidence": list[str], "fallbacks": _fallbacks(s)}
    return s.list_of(s.object_of(end, with_verdict), "newest first")


def build_why_hosts(s: Schemas) -> Schema:
    return _of_hosts(s, {"problem": str | None, "ended": list[EndInWords]})


def build_free(s: Schemas) -> Schema:
    return s.object_of({"schema": Literal[1], "freed": list[Freed]})


def build_free_hosts(s: Schemas) -> Schema:
    return _of_hosts(s, {"problem": str | None, "freed": list[Freed]})


def build_limit(s: Schemas) -> Schema:
    return s.object_of({"schema": Literal[1], "limited": Limited})


def build_doctor(s: Schemas) -> Schema:
    reasons = s.list_of(
        s.object_of({"code": str, "level": Level, "values": dict[str, Value], "text": str})
    )
    python = {
        **read_fields(Device, without=("computed",)),
        "works": Annotated[bool | None, "a small computation on the device gave the right result"],
        "reasons": reasons,
    }
    return s.object_of(
        {
            "schema": Literal[1],
            "machine": Machine,
            "pythons": s.list_of(s.object_of(python)),
            "processes": s.list_of(s.object_of({"pid": int, "name": str, "reasons": reasons})),
            "problems": list[Problem],
            "left_out": Annotated[
                list[str], "Pythons that were not inspected, because there were too many"
            ],
            "icon": IconCheck | None,
            "alerts": DeliveryCheck | None,
        }
    )


def build_self_test(s: Schemas) -> Schema:
    check = {"check": str, "state": str, "detail": str | None}
    return s.object_of(
        {"schema": Literal[1], "mpsbar": str, "checks": s.list_of(s.object_of(check))}
    )


def build_run_summary(s: Schemas) -> Schema:
    child = {"pid": int, "name": str, "how": str}
    return s.object_of(
        {
            "command": Annotated[str, "name of the command"],
            "pid": int,
            "verdict": EndVerdict,
            "how": str,
            "evidence": list[str],
            "next_steps": list[str],
            "seconds": float,
            "connected_processes": int,
            "peak_allocated": Annotated[int | None, "bytes"],
            "peak_driver": Annotated[int | None, "bytes"],
            "largest_cache": Annotated[int | None, "bytes"],
            "peak_footprint": Annotated[int | None, "bytes"],
            "frees": int,
            "cpu_fallbacks": Annotated[int | None, "null: not counted, without --explain"],
            "failed_children": s.list_of(s.object_of(child)),
            "fallbacks": s.or_null(_fallbacks(s)),
            "fallbacks_complete": Annotated[bool | None, "false: there may be more"],
        }
    )


def build_compare(s: Schemas) -> Schema:
    number = float | None  # JSON has no infinity
    difference = s.object_of(
        {
            "label": Annotated[str, '"output", or "gradient of …"'],
            "largest": Annotated[number, "error, in units of the result's usual size"],
            "typical": number,
            "tolerance": Annotated[number, "the largest error that rounding explains"],
            "share": Annotated[number, "share of its numbers beyond that error"],
            "is_explained": bool,
            "nonfinite": Annotated[str | None, "NaN or Inf, where there should be a number"],
            "longest_sum": int,
        }
    )
    culprit = {
        "module": str,
        "type": str,
        "kind": Literal["differs", "NaN", "Inf", "raised", "parameter"],
        "call": int,
        "text": str | None,
        "largest_right": number,
        "difference": s.or_null(difference),
    }
    raised = s.or_null(s.object_of({"module": str, "text": str}))
    fallback = {"module": str, "operation": str, "times": int}
    output = {"largest": number, "typical": number, "same_top1": number}
    gradients = {"compared": int, "worst": str | None, "largest": number, "missing": list[str]}
    dtype = {
        "state": Literal["works", "differs", "nonfinite", "raised", "unchecked", "crashed"],
        "eps": number,
        "largest_number": number,
        "culprits": s.list_of(
            s.object_of(culprit), "modules that give wrong results for the right input"
        ),
        "followers": Annotated[list[str], "modules that are wrong only because their input was"],
        "raised": raised,
        "not_run": raised,
        "out_of_memory": bool,
        "nonfinite": s.or_null(s.object_of({"module": str, "what": str})),
        "fallbacks": s.list_of(s.object_of(fallback), "operations that fell back to the CPU"),
        "output": s.or_null(s.object_of(output)),
        "unexplained": s.or_null(
            difference, "the whole result differs, although no single module does"
        ),
        "loss": number,
        "gradients": s.or_null(s.object_of(gradients)),
        "checked": Annotated[int, "modules that were run alone"],
        "unchecked": s.list_of(s.object_of({"module": str, "text": str})),
        "seconds": number,
        "spread": number,
        "runs": int | None,
        "speed_to_float32": number,
        "speed_to_cpu": number,
        "peak": Annotated[int | None, "bytes"],
        "peak_is_sampled": bool,
        "peak_to_float32": number,
        "notes": list[str],
    }
    slow = {"module": str, "type": str, "seconds": dict[str, float | None]}
    reference = {"device": str, "dtype": str, "seconds": number, "loss": number}
    return s.object_of(
        {
            "schema": Literal[1],
            "kind": Literal["forward", "training"],
            "model": str,
            "parameters": int,
            "modules": int,
            "device": str,
            "torch": str,
            "reference": s.object_of(reference),
            "piecewise": bool,
            "steps": float,
            "dtypes": s.map_of(s.object_of(dtype, {"text": Annotated[str, "how Python crashed"]})),
            "slowest": s.list_of(s.object_of(slow)),
            "notes": list[str],
            "not_restored": list[str],
            "headline": str,
        }
    )


# The file's name, the command that prints it, and what builds its schema.
FILES: dict[str, tuple[str, Callable[[Schemas], Schema]]] = {
    "status": ("mpsbar status --json", build_status),
    "status-hosts": ("mpsbar status --json --host HOST", build_status_hosts),
    "free": ("mpsbar free --json", build_free),
    "free-hosts": ("mpsbar free --json --host HOST", build_free_hosts),
    "limit": ("mpsbar limit --json", build_limit),
    "why": ("mpsbar why --json", build_why),
    "why-hosts": ("mpsbar why --json --host HOST", build_why_hosts),
    "probe": ("mpsbar probe --json", build_probe),
    "probe-deep": ("mpsbar probe --deep --json", build_probe_deep),
    "compare": ("mpsbar compare --json", build_compare),
    "doctor": ("mpsbar doctor --json", build_doctor),
    "self-test": ("mpsbar doctor --self-test --json", build_self_test),
    "run-summary": ("mpsbar run --summary=json FILE", build_run_summary),
}


def build_file(name: str) -> Schema:
    command, build = FILES[name]
    schemas = Schemas()
    body = build(schemas)
    text = f"What `{command}` prints. Fields are only added; sizes are bytes, null is not known."
    definitions = dict(sorted(schemas.definitions.items()))
    return {
        "$schema": _DIALECT,
        "$id": f"urn:mpsbar:schema:1:{name}",
        "title": command,
        **body,
        "description": text,
        **({"$defs": definitions} if definitions else {}),
    }


def render_file(name: str) -> str:
    return json.dumps(build_file(name), indent=1, ensure_ascii=False) + "\n"
