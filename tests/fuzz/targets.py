"""The readers, each as a function of bytes. What it may raise is its documented way to refuse."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

from mpsbar.agent import protocol
from mpsbar.core import toml
from mpsbar.core.dtype_results import parse_record as parse_probe
from mpsbar.core.endings import EndEvidence
from mpsbar.core.naming import name_process
from mpsbar.core.process_tracker import ProcessTracker
from mpsbar.core.secrets import mask, shorten_command
from mpsbar.core.settings import KEYS, parse_text, parse_values
from mpsbar.core.snapshot import Snapshot
from mpsbar.core.torch_facts import judge_settings, mask_settings
from mpsbar.core.verdicts import judge_end, parse_record
from mpsbar.doctor.parse import parse_device
from mpsbar.fleet import parse_status
from mpsbar.history.database import STEPS
from mpsbar.history.writer import PendingRows, RunWriter
from mpsbar.system import linux, linux_reports
from mpsbar.system.child_process import parse_answer
from mpsbar.system.last_words import parse_last_words
from mpsbar.system.linux_exits import parse_zombie
from mpsbar.system.macos import accelerator, gpu, report_files, sysctl
from mpsbar.system.platform import parse_command, parse_variables
from mpsbar.ui.text.endings import say_verdict
from mpsbar.workers.environments import EnvironmentProblem, parse_environment
from mpsbar.workers.parse import parse_freed, parse_tensors, parse_worker


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")


def fuzz_protocol(data: bytes) -> None:
    buffer = bytearray(data)
    with suppress(protocol.ProtocolError):
        for line in protocol.split_lines(buffer):
            number, method, _ = protocol.parse_request(line)
            assert len(str(number)) <= 100 and isinstance(method, str)
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


def fuzz_settings(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    with suppress(toml.NotTOML):
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
            accelerator.parse_gpu(properties)
            accelerator.parse_clients(properties, 1)
    for parse in (sysctl.parse_number, sysctl.parse_text, sysctl.parse_swap_used):
        parse(data)


def fuzz_other_pythons(data: bytes) -> None:
    answer = parse_answer(data)
    with suppress(EnvironmentProblem):
        environment = parse_environment("p", answer or {})
        assert environment.site.is_absolute() and environment.prefix.isprintable()
    parse_device("p", [answer] if answer else [], data, None)
    with suppress(ValueError):
        parse_probe(answer)


def fuzz_history(data: bytes) -> None:
    """An agent's numbers, through a snapshot, into a real database."""
    worker = parse_worker(7, None, _json(data), "live", 0.0)
    tracker, rows = ProcessTracker(), PendingRows()
    snapshot = Snapshot(1e9, (worker,), processes=())
    ended = tracker.update(snapshot)
    rows.add(snapshot, tracker.present.values(), ended)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(";".join(STEPS))
        assert RunWriter().write(connection, rows) == 0
        assert connection.execute("SELECT count(*) FROM machine").fetchone()[0] == 1


def fuzz_last_words(data: bytes) -> None:
    """A record that an agent left, down to the sentence that is shown."""
    words = parse_last_words(_json(data))
    if words is not None:
        verdict = judge_end(EndEvidence(words=words, is_connected=True))
        assert say_verdict(verdict, words.name).isprintable()
    parse_record(_json(data))


def fuzz_reports(data: bytes) -> None:
    """A report file of macOS, and what Linux says of kills for memory."""
    text = data.decode("utf-8", "replace")
    crash = report_files.parse_crash(text)
    assert crash is None or crash.report.sentence.isprintable()
    report_files.parse_panic(text)
    report_files.parse_gpu_event(text, 1.0)
    report_files.find_jetsam(text, 7)
    report_files.parse_name(text)
    linux_reports.parse_groups(data)
    linux_reports.parse_kills(data, 0.0)
    parse_zombie(data)


def fuzz_remote_status(data: bytes) -> None:
    """A line that another computer's `mpsbar status --json` printed, over ssh."""
    with suppress(parse_status.NotAStatus):
        parse_status.parse_status(data)
    with suppress(parse_status.NotAStatus):
        parse_status.parse_freed(data)


def fuzz_secrets(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    once = mask(text)
    assert len(once) <= len(text) + 3 * text.count("://") + 3


TARGETS: dict[str, Callable[[bytes], None]] = {
    name.removeprefix("fuzz_"): function
    for name, function in list(globals().items())
    if name.startswith("fuzz_")
}
