"""The readers, each as a function of bytes. What it may raise is its documented way to refuse."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from mpsbar.agent import methods, protocol
from mpsbar.agent.secrets import mask, shorten_command
from mpsbar.core import toml
from mpsbar.core.alerts import Alerts
from mpsbar.core.dtype_results import parse_probe_json
from mpsbar.core.fallbacks import Fallbacks, complete_by_profile, merge_operations, parse_profile
from mpsbar.core.findings import Health
from mpsbar.core.health import judge
from mpsbar.core.host_readings import HostReading
from mpsbar.core.naming import name_process
from mpsbar.core.process_tracker import ProcessTracker
from mpsbar.core.settings import KEYS, parse_text, parse_values
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.torch_facts import NativeOperations, judge_settings, mask_settings
from mpsbar.core.trends import Trends
from mpsbar.core.untrusted import parse_object
from mpsbar.core.verdicts import parse_verdict_json
from mpsbar.doctor.parse import parse_device
from mpsbar.dtypes.deep_results import parse_deep_record
from mpsbar.dtypes.deep_text import render_csv, render_deep
from mpsbar.dtypes.table import TableStyle
from mpsbar.fleet import parse_status
from mpsbar.fleet.exporter import Exporter
from mpsbar.history.database import build_steps
from mpsbar.history.writer import PendingRows, RunWriter
from mpsbar.system import linux, linux_exits, linux_reports
from mpsbar.system.last_words import parse_last_words
from mpsbar.system.macos import gpu, iokit_values, report_files, sysctl
from mpsbar.system.platform import parse_command, parse_variables
from mpsbar.ui.hosts_status import render_hosts
from mpsbar.ui.menu import build_menu
from mpsbar.ui.status_table import render_status
from mpsbar.ui.text import outcomes
from mpsbar.ui.text.alerts import say_alert_in_a_line
from mpsbar.ui.text.fallbacks import render_fallbacks
from mpsbar.ui.text.hosts import build_hosts, render_ends
from mpsbar.ui.text.outcomes import say_limited
from mpsbar.ui.text.status_json import build_status
from mpsbar.ui.text.status_line import build_fields, parse_format, render_line
from mpsbar.workers.environments import UnusablePythonError, parse_environment
from mpsbar.workers.explain import parse_operations
from mpsbar.workers.parse import parse_freed, parse_limited, parse_tensors, parse_worker

# The names that our readers look for; a fuzzer that must guess them letter by letter reaches little.
NAMES = (
    "jsonrpc", "id", "method", "params", "result", "error", "code", "schema", "time", "pid", "parent", "name",
    "argv", "executable", "python", "notebook", "methods", "frameworks", "torch", "backends", "mps", "mlx",
    "framework", "state", "allocated", "cached", "reserved", "driver", "peak", "budget", "in use", "done", "busy",
    "last_free", "number", "freed", "seconds", "collected", "not_known", "reason", "where", "groups", "device",
    "dtype", "shape", "count", "bytes", "others", "not_visible", "cut_short", "machine", "os", "chip",
    "memory_total", "memory_available", "swap_used", "pressure", "gpu", "utilization", "memory_in_use",
    "memory_budget", "workers", "processes", "started", "age_s", "footprint", "footprint_kind", "gpu_percent",
    "health", "level", "reasons", "critical", "site", "prefix", "managed", "implementation", "version", "stage",
    "kind", "argument", "bug_type", "exception", "signal", "termination", "namespace", "SIGNAL", "asi", "threads",
    "procLaunch", "captureTime", "faultingThread", "frames", "imageIndex", "usedImages", "symbol", "attached",
    "ended", "command", "type", "message", "memory", "values", "basis", "sure", "unreadable", "progress", "limit",
)  # fmt: skip
NUMBERS = (
    0,
    1,
    -1,
    7,
    2**31,
    2**53,
    2**53 + 1,
    2**63,
    2**64,
    -(2**63),
    10**30,
    0.5,
    -0.0,
    1e308,
    1e-320,
)


def build_value(data: bytes, most: int = 200) -> Any:
    """JSON values out of any bytes: two say what comes next, the names above among it."""
    rest, left = iter(data), most

    def take() -> int:
        return next(rest, 0)

    def build(depth: int) -> Any:
        nonlocal left
        left -= 1
        kind = take() % 10 if left > 0 and depth < 8 else 0
        if kind <= 1:
            return (None, True, False)[take() % 3]
        if kind <= 3:
            return NUMBERS[take() % len(NUMBERS)]
        if kind == 4:
            return take() * 256 + take()
        if kind == 5:
            return NAMES[take() % len(NAMES)]
        if kind == 6:
            return bytes(take() for _ in range(take() % 24)).decode("utf-8", "surrogateescape")
        if kind == 7:
            return [build(depth + 1) for _ in range(take() % 5)]
        return {NAMES[take() % len(NAMES)]: build(depth + 1) for _ in range(take() % 12)}

    return build(0)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return build_value(data)


def _line(data: bytes) -> bytes:
    """As it stands, or, if it begins so, the JSON that its bytes stand for."""
    return json.dumps(build_value(data[1:])).encode() if data[:1] == b"\0" else data


def fuzz_protocol(data: bytes) -> None:
    buffer = bytearray(_line(data) + b"\n" if data[:1] == b"\0" else data)
    with suppress(protocol.ProtocolError):
        for line in protocol.split_lines(buffer):
            number, method, params = protocol.parse_request(line)
            assert len(str(number)) <= 100 and isinstance(method, str)
            method, limit = methods.identify_job(method, params)
            assert limit is None or (method == "limit" and 1 << 26 <= limit <= 1 << 50)
            protocol.result(number, None)


def fuzz_agent_answers(data: bytes) -> None:
    """What an agent says, down to the row that is shown and the JSON that is printed."""
    value = _json(data)
    hello = stats = value
    if isinstance(value, list) and len(value) == 2:
        hello, stats = value
    worker = parse_worker(7, hello, stats, "live", 0.0)
    assert worker.name.isprintable() and 0 < len(worker.name) <= 400
    for backend in worker.backends:
        assert backend.allocated is None or 0 <= backend.allocated <= 2**53
    freed = parse_freed(worker, value)
    assert freed.state in ("done", "busy", "failed")
    assert parse_tensors(7, value).state in ("done", "busy", "failed")
    limited = parse_limited(worker, 1 << 30, value)
    assert limited.state in ("done", "busy", "above", "impossible", "failed")
    assert say_limited(limited)


def fuzz_settings(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    with suppress(toml.InvalidTomlError):
        values, complaints = parse_values(toml.parse_toml(text))
        assert set(values) <= set(KEYS) and all(map(str.isprintable, complaints))
    for key in KEYS:
        parse_values({key: parse_text(key, text)})


def fuzz_linux_readings(data: bytes) -> None:
    linux.parse_maps(data)
    linux.parse_pressure(data)
    linux.parse_kilobytes(data, linux._MEMORY)
    with suppress(ProcessLookupError):
        linux.parse_stat(data)
    command = parse_command(data.split(b"\0"))
    variables = parse_variables(data.split(b"\0"))
    assert name_process(command, None, variables)
    shorten_command(command)
    judge_settings(mask_settings(variables), "2.13.0")


def fuzz_mac_readings(data: bytes) -> None:
    with suppress(OSError):
        for properties in gpu.parse_accelerators(data):
            iokit_values.parse_gpu(properties)
            iokit_values.parse_clients(properties, 1)
    for parse in (sysctl.parse_number, sysctl.parse_text, sysctl.parse_swap_used):
        parse(data)


def fuzz_other_pythons(data: bytes) -> None:
    answer = parse_object(_line(data))
    with suppress(UnusablePythonError):
        environment = parse_environment("p", answer or {})
        assert environment.site.is_absolute() and environment.prefix.isprintable()
    parse_device("p", [answer] if answer else [], data, None)
    with suppress(ValueError):
        parse_probe_json(answer)


def fuzz_history(data: bytes) -> None:
    """An agent's numbers, through a snapshot, into a real database."""
    worker = parse_worker(7, None, _json(data), "live", 0.0)
    tracker, rows = ProcessTracker(), PendingRows()
    snapshot = Snapshot(1e9, (worker,), processes=())
    ended = tracker.update(snapshot)
    rows.add(snapshot, tracker.present.values(), ended)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(";".join(build_steps()))
        assert RunWriter().write(connection, rows) == 0
        assert connection.execute("SELECT count(*) FROM machine").fetchone()[0] == 1


def fuzz_remote_status(data: bytes) -> None:
    """A line that another computer's `mpsbar status --json` printed, over ssh, down to what is shown."""
    line = _line(data)
    if data[:1] == b"\0":  # nearly right ones
        value = build_value(data[1:])
        fields = value if isinstance(value, dict) else {}
        line = json.dumps({"workers": [value], "freed": [value]} | fields | {"schema": 1}).encode()
    with suppress(parse_status.UnusableAnswerError):
        reading = HostReading("mac1", parse_status.parse_status(line), 0.0)
        assert_clean(render_hosts([reading]))
        json.dumps(build_hosts([reading]), allow_nan=False)
    with suppress(parse_status.UnusableAnswerError):
        for outcome in parse_status.parse_freed(line):
            assert_clean(f"{outcome.name} {outcomes.say_freed(outcome)}")
    listed = json.dumps([build_value(data[1:])]).encode() if data[:1] == b"\0" else line
    with suppress(parse_status.UnusableAnswerError):
        ends = parse_status.parse_ends(listed)
        assert_clean(render_ends("mac1", ends, None, lambda: NativeOperations({}, (2, 15)), 7))


class _Ticked:
    """A monitor that has seen one snapshot."""

    ticks, tick_seconds, pause = 1, 0.0, 2.0

    def __init__(self, snapshot: Snapshot) -> None:
        self.latest = snapshot


def fuzz_outputs(data: bytes) -> None:
    """What two agents say, down to every output: health, alerts, tables, JSON, the menu, Prometheus."""
    value = _json(data)
    said = value if isinstance(value, list) and value else [value]
    workers = tuple(
        parse_worker(7 + number, hello, said[-1], "live", 0.0)
        for number, hello in enumerate((said[0], value))
    )
    trends, alerts, tracker = Trends(), Alerts(), ProcessTracker()
    snapshot = Snapshot(1e9, workers, processes=())
    for moment in range(2):
        snapshot = replace(snapshot, time=1e9 + 60 * moment)
        trends.add(snapshot)
        snapshot = replace(snapshot, health=judge(snapshot, trends, Health()))
        ended = tracker.update(snapshot)
        for alert in alerts.consider(snapshot, tracker):
            assert_clean(say_alert_in_a_line(alert))
        assert not ended
    assert_clean(render_status(snapshot, False))
    json.dumps(build_status(snapshot), allow_nan=False)
    assert_clean(str(build_menu(snapshot)))
    assert_clean(render_line(parse_format("{held} {top} {top_held}"), build_fields(snapshot)))
    page = Exporter(_Ticked(snapshot)).render().decode()
    assert_clean(page)
    assert list(text_string_to_metric_families(page))


def assert_clean(text: str) -> None:
    """Nothing a terminal would act on, and nothing that cannot be written as UTF-8."""
    assert all(part.isprintable() for part in text.split("\n")), text
    text.encode()


def fuzz_crash_reports(data: bytes) -> None:
    """Files that macOS, or anybody, left in DiagnosticReports."""
    text = data.decode("utf-8", "replace")
    if data[:1] == b"\0":
        value = build_value(data[1:])
        fields = value if isinstance(value, dict) else {"threads": value}
        text = '{"bug_type": "309"}\n' + json.dumps({"pid": 7} | fields)
    crash = report_files.parse_crash(text)
    if crash is not None:
        assert_clean(repr(crash))
    report_files.parse_gpu_event(text, 1e9)
    report_files.parse_panic(text)
    report_files.parse_name(text)
    report_files.find_type(text)
    report_files.find_jetsam(text, 7)


def fuzz_last_words(data: bytes) -> None:
    """What an agent wrote about its end, and what the history holds of a verdict."""
    value = _json(data)
    fields = value if isinstance(value, dict) else {}
    right = {"version": 1, "pid": 7, "attached": 1, "ended": 2}
    for record in (value, right | fields):
        words = parse_last_words(record)
        assert words is None or (words.name.isprintable() and words.pid > 0)
    parse_verdict_json(value)
    parse_verdict_json({"code": "crashed", "sure": "sure", "values": fields} | fields)


def fuzz_linux_reports(data: bytes) -> None:
    linux_reports.parse_groups(data)
    linux_reports.parse_kills(data, 0.0)
    linux_reports.parse_count(data)
    linux_exits.parse_zombie(data)


def fuzz_deep_probes(data: bytes) -> None:
    """A file that is named by --against, or lies in our folder."""
    value = _json(data)
    fields = value if isinstance(value, dict) else {"cells": value}
    right = {"schema": 1, "kind": "mpsbar deep probe", "ended": "ok"}
    for record in (
        value,
        right | fields,
        right | {"cells": [fields, {"operation": "x", "dtype": "int8"} | fields]},
    ):
        with suppress(ValueError):
            probe = parse_deep_record(record)
            assert_clean(render_deep(probe, TableStyle(), None, probe))
            render_csv(probe)


def fuzz_fallbacks(data: bytes) -> None:
    """What the processes of `mpsbar run --explain` left: their counts, and the end of their stderr."""
    value, text = _json(data), data.decode("utf-8", "replace")
    title = f"{' CPU Fallback Profiling: Total 1 Runs, 1.00 ms, 1 bytes Copies ':-^150}\n"
    found, _, _ = parse_profile(title + text)
    parse_profile(text)
    counted = [*parse_operations(value), *parse_operations([value, ["aten::x", 1, value]])]
    merged = merge_operations(complete_by_profile(counted, found))
    native = NativeOperations({}, (2, 15))
    assert_clean("\n".join(render_fallbacks(Fallbacks(merged, "2.13"), native, "/")))


def fuzz_secrets(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    once = mask(text)
    assert len(once) <= len(text) + 3 * text.count("://") + 3


TARGETS: dict[str, Callable[[bytes], None]] = {
    name.removeprefix("fuzz_"): function
    for name, function in list(globals().items())
    if name.startswith("fuzz_")
}
