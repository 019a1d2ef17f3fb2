"""The pages of docs/reference, from the code: commands, settings, JSON, metrics, wire, probe."""

import dataclasses
import re
import time
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import command_line
import json_schemas

from mpsbar.agent import pending_free, protocol
from mpsbar.agent.conventions import MAX_LIMIT, MIN_LIMIT
from mpsbar.core.dtype_results import Probe
from mpsbar.core.gpu import Gpu
from mpsbar.core.machine import Machine
from mpsbar.core.settings import _ALLOWED, Settings
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.toml import render_value
from mpsbar.dtypes import checks, operations
from mpsbar.dtypes.text import affected_releases, check_title

_MADE = "<!-- Written by packaging/build_reference.py (make reference) from the code. -->\n"
# What each method is asked with and answers. A test asks a real worker and compares the names.
METHODS: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "hello": (
        "Who this process is. Asked once for each connection.",
        {},
        {
            "protocol": f"{protocol.PROTOCOL}",
            "agent": "the version of mpsbar in this process",
            "methods": "those that it has",
            "pid": "its own",
            "parent": "of its parent",
            "executable": "its Python",
            "python": "the version of that",
            "argv": "how it was started, at most 20 words of 300 characters",
            "frameworks": "versions by name, of those that are imported",
            "notebook": "the file name of a kernel's notebook, or null",
            "last_words": "whether it leaves a record when it ends",
        },
    ),
    "stats": (
        "What the allocators hold. Takes microseconds, and touches no device that is not in use.",
        {
            "gpu_client": "true, false or null: whether the process gives the GPU work, as seen "
            "from the outside. Before torch 2.13 MPS is read only if it is true."
        },
        {
            "frameworks": "as in hello",
            "backends": "by name (mps, cuda, mlx, cpu): `framework`, `state`, and in use its counters",
            "last_free": "the last Free, whoever asked for it, or null",
            "progress": (
                "of its progress bars `name`, `done`, `total`, `unit`, `rate`, `seconds_left`, the "
                "same of the `inner` one; of its optimizer `steps`, `steps_per_second`: each null "
                "where it is unknown, and all where nothing tells"
            ),
            "kept_free": "a Free that waits for a safe moment: `asked`, `left`, `tries`, `reason`",
            "fallbacks": "operations that ran on the CPU, where they are counted, or null",
        },
    ),
    "free": (
        "Release caches. Answered when it is done, or busy.",
        {
            "gpu_client": "as above",
            "seconds": "how long it may wait for a safe moment; up to 60, with `when_possible` "
            f"up to {pending_free.MAX_SECONDS:.0f}",
            "when_possible": "true: answered at once, freed at the first safe moment",
            "cancel": "true: take back one that waits",
        },
        {
            "number": "of the Frees of this process, from 1",
            "state": "done or busy; waiting or cancelled for a kept one",
            "reason": "why it was busy: `code`, `where`; or null",
            "freed": "bytes, measured",
            "seconds": "from the request to the answer",
            "paused": "seconds that the program stood still",
            "collected": "whether gc.collect() ran first",
            "trimmed": "a busy process gave its cache back by itself",
            "gui_toolkit": "beside which gc.collect() is not safe, or null",
            "main_was_waiting": "and so could not run gc.collect()",
            "not_known": "backends that may or may not be in use",
            "backends": "by name: `freed`, `before`, `after`, or why not",
        },
    ),
    "tensors": (
        "Live tensors by device, dtype and shape; each storage is counted once.",
        {"gpu_client": "as above"},
        {
            "state": "done, busy or failed",
            "groups": "the largest 50: `device`, `dtype`, `shape`, `count`, `bytes`",
            "others": "the rest: `count`, `bytes`",
            "not_visible": "bytes by device that Python sees no tensor of",
            "list_seconds": "of which the listing took",
            "seconds": "that the program stood still",
            "cut_short": "there was no time for all of them",
        },
    ),
    "limit": (
        "Limit the memory of this process.",
        {
            "bytes": f"{MIN_LIMIT} to {MAX_LIMIT}, or null: no limit",
            "gpu_client": "as above",
            "seconds": "how long it may wait for a safe moment",
        },
        {
            "state": "done, busy, refused, unsupported or failed",
            "asked": "the bytes of the request",
            "reason": "why not: `code`, `where`; or null",
            "error": "the framework's own words, or null",
            "seconds": "from the request to the answer",
            "backends": "by name: the limit that is in force, and what it freed",
        },
    ),
}  # fmt: skip


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    head = tuple(head)
    return "\n".join([line(head), line("---" for _ in head), *map(line, rows)]) + "\n"


def _code(text: str) -> str:
    return f"`{text}`"


def build_commands() -> str:
    parts = [
        f"{_MADE}# Commands\n\nThe same words as `mpsbar COMMAND --help` and `man mpsbar`. Without a command, mpsbar is the menu "
        "bar on a Mac, elsewhere `mpsbar top`, or `mpsbar status` in a pipe.\n\n"
    ]
    options = ((_code(", ".join(o.names)), o.help) for o in command_line.read_main_options())
    parts.append(_table(("option", ""), options))
    for command in command_line.read_commands():
        parts.append(
            f"\n## mpsbar {command.name}\n{command.summary[0].upper()}{command.summary[1:]}.\n"
        )
        parts.append(f"```text\n{command.usage}\n```\n{command.description}\n\n")
        if command.arguments:
            rows = ((_code(", ".join(a.names)), a.help) for a in command.arguments)
            parts.append(_table(("argument", ""), rows) + "\n")
        parts.append("```sh\n" + "\n".join(command.examples) + "\n```\n")
    parts.append("\n## Environment variables\n")
    rows = ((_code(name), text) for name, text in command_line.VARIABLES.items())
    parts.append(_table(("variable", ""), rows))
    parts.append("\nEvery [setting](settings.md) has one too.\n")
    return "".join(parts)


def build_settings() -> str:
    comments = {
        name: hint.__metadata__[0]
        for name, hint in json_schemas.read_fields(Settings).items()
        if hasattr(hint, "__metadata__")
    }
    usual = Settings()
    rows = (
        (
            _code(field.name),
            _code(_show(getattr(usual, field.name))),
            _ALLOWED[field.name],
            comments.get(field.name, ""),
            _code(f"MPSBAR_{field.name.upper()}"),
        )
        for field in dataclasses.fields(Settings)
    )
    return (
        f"{_MADE}# Settings\n\nA TOML file: `mpsbar config path` says where, `mpsbar config edit` opens it with every setting as a "
        "comment, `mpsbar config validate` says what is wrong with it. An environment "
        "variable wins over the file, and `--bar` and `--interval` over both.\n\n"
        + _table(("setting", "unless set", "may be", "what it is", "variable"), rows)
    )


def _show(value: Any) -> str:
    return "{}" if value == {} else render_value(list(value) if isinstance(value, tuple) else value)


def build_json() -> str:
    parts = [
        f"{_MADE}# JSON\n\nWhat `--json` prints is described by JSON Schema (2020-12) in "
        "[resources/schema](../../resources/schema), which is part of every installation. `schema` is 1; within it fields "
        "are only added. Sizes are bytes, times are seconds (of the epoch, where they are moments), `null` is not known and never 0. "
        "The tests hold real output of every command to these files.\n\n"
    ]
    rows = (
        (_code(command), f"[{name}.json](../../resources/schema/{name}.json)")
        for name, (command, _) in json_schemas.FILES.items()
    )
    parts.append(_table(("command", "schema"), rows))
    for name in ("status", "free", "why", "probe"):
        schema = json_schemas.build_file(name)
        parts.append(f"\n## {json_schemas.FILES[name][0]}\n")
        fields = _list_fields(schema, schema.get("$defs", {}))
        parts.append(_table(("field", "type", ""), ((_code(p), t, d) for p, t, d in fields)))
    return "".join(parts)


def _list_fields(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], path: str = ""
) -> Iterable[tuple[str, str, str]]:
    for name, field in _unwrap(schema, definitions).get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        inner = _unwrap(field, definitions)
        yield (
            here + ("[]" if "items" in inner else ""),
            _say_type(field, definitions),
            field.get("description", ""),
        )
        if here.count(".") < 3:
            yield from _list_fields(field, definitions, here + ("[]" if "items" in inner else ""))
    items = _unwrap(schema, definitions).get("items")
    if isinstance(items, dict):
        yield from _list_fields(items, definitions, path or "[]")


def _unwrap(schema: Any, definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that is meant: behind a reference, and beside null."""
    if not isinstance(schema, Mapping):
        return {}
    if "$ref" in schema:
        return _unwrap(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    for part in schema.get("anyOf", ()):
        if part != {"type": "null"}:
            return _unwrap(part, definitions)
    return schema


def _say_type(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_say_type(part, definitions) for part in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(_code(str(word)) for word in schema["enum"])
    kinds = _unwrap(schema, definitions).get("type", "any")
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)


def _list_metrics() -> list[Any]:
    """Every family, by the exporter itself, of a computer of which everything is known."""
    from mpsbar.fleet.exporter import Exporter

    machine = Machine(
        memory_total=1, memory_available=1, swap_used=1, pressure="normal", on_battery=False,
        gpu=Gpu(utilization=1.0, memory_in_use=1, memory_budget=1, recoveries=0),
    )  # fmt: skip
    probe = Probe(python="", ended="ok", device="cpu", time=0.0)
    snapshot = Snapshot(time=time.time(), machine=machine, dtypes=probe)
    monitor: Any = SimpleNamespace(latest=snapshot, ticks=1, tick_seconds=0.1, pause=1.0)
    exporter = Exporter(monitor)
    exporter.scrape_seconds = 0.1
    return list(exporter.collect())


def build_metrics() -> str:
    ends = {"counter": "_total", "info": "_info"}
    rows = (
        (
            _code(family.name + ends.get(family.type, "")),
            family.type,
            ", ".join(map(_code, family._labelnames)),
            family.documentation,
        )
        for family in _list_metrics()
    )
    return (
        f"{_MADE}# Metrics\n\nWhat `mpsbar export` serves to Prometheus, at `/metrics`; how to set it up: [More than one Mac](../fleet.md). "
        "What is not known is absent, never 0. Series end with their process. Labels never have a command line, a path or a user. "
        "Sizes are bytes, shares 0 to 1. `mpsbar_build_info` and `mpsbar_machine_info` have what they tell as labels: versions; os, model, chip, gpu. "
        "The codes of `mpsbar_worker_ends_total` are those of [How runs end](../endings.md).\n\n"
        + _table(("metric", "type", "labels", ""), rows)
    )


def build_protocol() -> str:
    errors = {
        protocol.PARSE_ERROR: "not JSON",
        protocol.INVALID_REQUEST: "not a request, or a line that is too long",
        protocol.METHOD_NOT_FOUND: "no such method",
        protocol.INVALID_PARAMS: "params are wrong",
        protocol.INTERNAL_ERROR: "a fault of the agent",
    }
    parts = [
        f"{_MADE}# The wire protocol\n\nA worker's agent listens on a Unix stream socket named by its pid, in a folder that only its user can "
        "enter; both ends ask the kernel who the other is, and talk to the same user only. JSON-RPC 2.0 without batches, one message a "
        f"line of at most {protocol.MAX_LINE} bytes, protocol number {protocol.PROTOCOL}. Fields are only added; a client ignores what it does not "
        "know. No code and no pickle ever travels. Answers come in at most ten rounds a second, and an idle connection is closed after 60 seconds.\n"
        "```text\n" + protocol.request(1, "stats", {"gpu_client": True}).decode() + "```\n"
    ]
    for name, (text, asked, answered) in METHODS.items():
        parts.append(f"\n## {name}\n{text}\n\n")
        if asked:
            parts.append(_table(("param", ""), ((_code(n), t) for n, t in asked.items())) + "\n")
        parts.append(_table(("answer", ""), ((_code(n), t) for n, t in answered.items())))
    parts.append(
        "\nA Free, a count of tensors or a limit that comes too soon after the last one is answered with the last result and its `age`, or "
        "with the reason `too_often`.\n\n## Errors\n"
    )
    parts.append(_table(("code", ""), ((_code(str(c)), t) for c, t in errors.items())))
    return "".join(parts)


def build_probe() -> str:
    names = list(operations.OPERATIONS)
    grid = (
        (
            _code(name),
            *(
                "•" if dtype in operations.OPERATIONS[name][1] else ""
                for dtype in operations.DTYPES
            ),
        )
        for name in names
    )
    tolerances = ", ".join(f"{d} {t:g}" for d, t in operations.TOLERANCE.items())
    bugs = (
        (
            check_title(name),
            affected_releases(bug),
            ", ".join(f"[#{n}](https://github.com/pytorch/pytorch/issues/{n})" for n in bug.issues),
        )
        for name, bug in checks.BUGS.items()
    )
    return (
        f"{_MADE}# What the probe tries\n\n`mpsbar probe` runs each operation in each dtype where it has a meaning, on the device and on the CPU in the widest "
        "dtype, and compares. The largest error that counts as rounding, relative to the largest number of the result: "
        f"{tolerances}; other dtypes are exact.\n\n"
        + _table(("operation", *operations.DTYPES), grid)
        + "\n## Known bugs that give wrong results\nEach is run on the device and compared with the CPU. Where it is known, as others reported "
        "it; nothing here was measured on a Mac.\n\n"
        + _table(("bug", "reported for", "issues of PyTorch"), bugs)
    )


PAGES: dict[str, Callable[[], str]] = {
    "commands": build_commands,
    "settings": build_settings,
    "json": build_json,
    "metrics": build_metrics,
    "protocol": build_protocol,
    "probe": build_probe,
}


def render_page(name: str) -> str:
    return re.sub(r"[ \t]+\n", "\n", PAGES[name]())
