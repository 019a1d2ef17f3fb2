"""Parses what mpsbar on another host printed as JSON. Pure; nothing in it is trusted."""

import json
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache, lru_cache, partial
from types import NoneType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from mpsbar.agent.secrets import mask, shorten_command
from mpsbar.core.actions import Freed, FreeState
from mpsbar.core.counters import SENT, Backend
from mpsbar.core.fallbacks import parse_fallbacks
from mpsbar.core.findings import Level
from mpsbar.core.host_readings import EndInWords, RemoteStatus
from mpsbar.core.machine import Machine, Process
from mpsbar.core.naming import printable
from mpsbar.core.progress import RunProgress
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.language import _
from mpsbar.workers.parse import (
    parse_amount,
    parse_bar,
    parse_count,
    parse_object,
    parse_seconds,
    parse_text,
    parse_time,
)

SCHEMA = 1
_MAX_ROWS = 2000
_MAX_REASONS = 3
_MAX_TEXTS = 20
_MAX_TEXT = 300
_MAX_FRAMEWORKS, _MAX_FRAMEWORK_NAME = 5, 20
_MAX_CACHED = 4096
# Of another host nobody is shown the PYTORCH_* variables of a process; masking them takes longest.
_NOT_READ = {"settings"}
_Values = TypeVar("_Values")
_Parser = Callable[[Any], Any]


class UnusableAnswerError(ValueError):
    """The answer can't be used; the text is one clause that says why."""


class NotFromMpsbarError(UnusableAnswerError):
    """The line is no answer of mpsbar; a login script may have printed it."""


def parse_status(line: bytes) -> RemoteStatus:
    answer = _parse_json(line)
    if not isinstance(answer.get("workers"), list):
        raise UnusableAnswerError(_("its output is not a status"))
    machine = parse_machine(answer.get("machine"))
    processes = answer.get("processes")
    found = None if processes is None else tuple(_each(processes, _parse_process))
    known = {process.pid: process for process in found or ()}
    workers = tuple(_each(answer["workers"], lambda fields: _parse_worker(fields, known)))
    when = parse_time(answer.get("time"))
    health = parse_object(answer.get("health"))
    level: Any = health.get("level")
    sent = health.get("reasons")
    texts = sent[:_MAX_REASONS] if isinstance(sent, list) else []
    reasons = tuple(mask(parse_text(text))[:200] for text in texts)
    return RemoteStatus(
        Snapshot(when or 0.0, workers, machine, found),
        level if level in get_args(Level) else None,
        reasons,
    )


def parse_machine(value: Any) -> Machine:
    return _parse_fields(Machine, value)


def _parse_fields(kind: type[_Values], value: Any, **required: Any) -> _Values:
    """Builds a dataclass by its own fields and types, so that a new field is read without a change
    here. A field that is missing, empty or of another type gets its value from `required`, else its
    default."""
    sent, known = parse_object(value), {}
    for name, parse in _field_parsers(cast("Any", kind)).items():
        if (given := sent.get(name)) is not None and (parsed := parse(given)) is not None:
            known[name] = parsed
    missing = {name: usual for name, usual in required.items() if not known.get(name)}
    return kind(**known | missing)


@cache
def _field_parsers(kind: type[Any]) -> dict[str, _Parser]:
    types = get_type_hints(kind)
    read = types.keys() - _NOT_READ
    return {name: _FIELD_PARSERS.get(name) or _build_parser(types[name]) for name in read}


def _build_parser(wanted: Any) -> _Parser:
    """Builds a function that returns None for what is not of this type, or larger than any of our
    values."""
    arguments = get_args(wanted)
    if NoneType in arguments:
        return _build_parser(next(kind for kind in arguments if kind is not NoneType))
    if get_origin(wanted) is Literal:
        return lambda value: value if value in arguments else None
    if get_origin(wanted) is tuple:
        return _build_tuple_parser(arguments)
    if is_dataclass(wanted):
        return partial(_parse_fields, cast("type[Any]", wanted))
    return _PARSERS[wanted]


def _build_tuple_parser(arguments: tuple[Any, ...]) -> _Parser:
    parsers = [_build_parser(kind) for kind in arguments if kind is not ...]
    has_any_length = arguments[-1] is ...

    def parse(value: Any) -> tuple[Any, ...] | None:
        given = value[:_MAX_TEXTS] if isinstance(value, list) else None
        if given is None or not (has_any_length or len(given) == len(parsers)):
            return None
        of_each = parsers * len(given) if has_any_length else parsers
        items = [of(item) for of, item in zip(of_each, given, strict=True)]
        return None if None in items else tuple(items)

    return parse


def parse_freed(line: bytes) -> list[Freed]:
    """Returns the outcomes that `mpsbar free --json` printed."""
    outcomes = _parse_json(line).get("freed")
    if not isinstance(outcomes, list):
        raise UnusableAnswerError(_("its output does not say what was freed"))
    return list(_each(outcomes, _parse_outcome))


def parse_ends(line: bytes) -> list[EndInWords]:
    """Returns the runs that `mpsbar why --json` printed, newest first."""
    answer = _load(line)
    if not isinstance(answer, list) or not all(isinstance(end, dict) for end in answer):
        raise NotFromMpsbarError(_("its output does not say how runs ended"))
    return list(_each(answer, _parse_end))


def _load(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise NotFromMpsbarError(_("its output is not JSON")) from None


def _parse_json(line: bytes) -> dict[str, Any]:
    answer = _load(line)
    if not isinstance(answer, dict) or "schema" not in answer:
        raise NotFromMpsbarError(_("its output is not a status"))
    if answer["schema"] != SCHEMA:
        raise UnusableAnswerError(_explain_schema(answer["schema"]))
    return answer


def _explain_schema(schema: Any) -> str:
    """Says which of the two is older, and the command that updates it."""
    text = _("its mpsbar is another version (schema {schema})")
    if isinstance(schema, int):
        text = _(
            "its mpsbar is newer than this one (schema {schema}); here: "
            "uv tool install --reinstall '.[terminal]' in a newer checkout of mpsbar"
        )
        if schema < SCHEMA:
            text = _(
                "its mpsbar is older than this one (schema {schema}); there: "
                "uv tool install --reinstall '.[terminal]' in a newer checkout of mpsbar"
            )
    return text.format(schema=printable(str(schema), 20))


def _each(values: Any, parse: Any) -> Any:
    for value in values[:_MAX_ROWS] if isinstance(values, list) else ():
        if isinstance(value, dict) and parse_count(value.get("pid")):
            yield parse(value)


def _parse_worker(fields: dict[str, Any], known: dict[int, Process]) -> Worker:
    state: Any = fields.get("state")
    backends = fields.get("backends")
    pid = fields["pid"]
    return Worker(
        pid=pid,
        name=_text(fields.get("name")) or f"process {pid}",
        state=state if state in ("live", "busy", "gone") else "busy",
        age=parse_seconds(fields.get("age_s")),
        parent=parse_count(fields.get("parent")),
        backends=tuple(
            _parse_backend(backend)
            for backend in (backends[:10] if isinstance(backends, list) else ())
            if isinstance(backend, dict)
        ),
        process=known.get(pid),
        progress=_parse_progress(fields.get("progress")),
    )


def _parse_progress(value: Any) -> RunProgress | None:
    fields = parse_object(value)
    bar, inner = parse_bar(fields.get("bar")), parse_bar(fields.get("inner"))
    steps = parse_count(fields.get("steps"))
    if bar is None and steps is None:
        return None
    return RunProgress(bar, inner, steps, parse_amount(fields.get("steps_per_second")))


def _parse_backend(fields: dict[str, Any]) -> Backend:
    return Backend(
        name=_text(fields.get("name")) or "?",
        framework=_text(fields.get("framework")) or "?",
        state=_text(fields.get("state")) or "?",
        **{counter.name: parse_count(fields.get(counter.name)) for counter in SENT},
    )


def _parse_process(fields: dict[str, Any]) -> Process:
    name = f"process {fields['pid']}"
    return _parse_fields(Process, fields, started=0.0, name=name, frameworks=("?",))


def _parse_end(fields: dict[str, Any]) -> EndInWords:
    return EndInWords(
        pid=fields["pid"],
        name=_text(fields.get("name")) or f"process {fields['pid']}",
        sentence=_text(fields.get("sentence")) or "?",
        ended=parse_time(fields.get("ended")),
        ran=parse_seconds(fields.get("ran")),
        peak=parse_count(fields.get("peak")),
        # An older mpsbar there says sureness.
        certainty=_text(fields.get("certainty", fields.get("sureness"))),
        evidence=_texts(fields.get("evidence")),
        next_steps=_texts(fields.get("next_steps")),
        fallbacks=parse_fallbacks(parse_object(fields.get("verdict")).get("fallbacks")),
    )


def _texts(value: Any) -> tuple[str, ...]:
    """Returns the first few texts, without values of another type."""
    given = value[:_MAX_TEXTS] if isinstance(value, list) else []
    return tuple(text for item in given if (text := _text(item)))


def _parse_outcome(fields: dict[str, Any]) -> Freed:
    state: Any = fields.get("state")
    return Freed(
        pid=fields["pid"],
        name=_text(fields.get("name")) or str(fields["pid"]),
        state=state if state in get_args(FreeState) else "failed",
        freed=parse_count(fields.get("freed")),
        seconds=parse_seconds(fields.get("seconds")),
        pinned=parse_count(fields.get("pinned")),
        reason=_text(fields.get("reason")),
        where=_text(fields.get("where")),
        error=_text(fields.get("error")),
    )


def _parse_frameworks(value: Any) -> tuple[str, ...]:
    given = value[:_MAX_FRAMEWORKS] if isinstance(value, list) else []
    return tuple(parse_text(name)[:_MAX_FRAMEWORK_NAME] for name in given)


def _parse_command(value: Any) -> tuple[str, ...]:
    """Parses a command and leaves out its options, as its own mpsbar should have done."""
    return _shorten(_texts(value))


_shorten = lru_cache(_MAX_CACHED)(shorten_command)


def _percent(value: Any) -> float | None:
    number = parse_seconds(value)
    return number if number is not None and number <= 100 else None


def _text(value: Any) -> str | None:
    """Parses a text and masks passwords in it: the sender may be an older mpsbar, or no mpsbar."""
    return _mask(value[:_MAX_TEXT]) if isinstance(value, str) else None


@lru_cache(_MAX_CACHED)  # a host sends the same texts every few seconds
def _mask(text: str) -> str:
    return mask(parse_text(text))[:200]


# Fields whose type does not say everything.
_FIELD_PARSERS: dict[str, _Parser] = {
    "started": parse_time,
    "frameworks": _parse_frameworks,
    "command": _parse_command,
    "gpu_percent": _percent,
    "utilization": _percent,
}
_PARSERS: dict[type, _Parser] = {
    str: _text,
    int: parse_count,
    float: parse_seconds,
    bool: lambda value: value if isinstance(value, bool) else None,
}
