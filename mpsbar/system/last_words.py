"""Reads the records that agents leave when their Python ends by itself. Nothing in them is trusted.

One folder in each run directory; looked at only after an end, and by `mpsbar why`.
"""

import json
import os
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpsbar.agent import user_folders
from mpsbar.agent.conventions import (
    ENDED_FOLDER,
    ENDED_NAME,
    MAX_ENDED_FILES,
    MAX_FALLBACKS,
    NO_LAST_WORDS,
)
from mpsbar.agent.secrets import mask
from mpsbar.core.endings import LastWords, RaisedError
from mpsbar.core.events import EndedProcess
from mpsbar.core.fallbacks import FallbackOperation, Fallbacks, parse_operations
from mpsbar.core.machine import SAME_START
from mpsbar.core.naming import name_process, printable
from mpsbar.core.untrusted import clean_text, is_number
from mpsbar.core.verdicts import build_verdict_json, parse_verdict_json
from mpsbar.system.files import read_bytes, read_json, replace_file

_NAME = re.compile(r"(\d{13})-([1-9]\d{0,9})\.json")
_LARGEST = 16 * 1024
_MAX_FILES = 2000
_MAX_TEXT = 200
_MAX_NUMBER = 2**53
_PATTERN = re.compile(r"[A-Za-z_][\w.]{0,99}")


def read_last_words(since: float = 0.0) -> list[LastWords]:
    """All records that were left after `since`, newest first."""
    records = [words for words in map(_read, _list(since)) if words is not None]
    return sorted(records, key=lambda words: -words.ended)


def find_last_words(
    pid: int,
    started: float | None,
    *,
    last_seen: float | None = None,
    or_of_parent: bool = False,
) -> LastWords | None:
    """The record of this very process. A pid is used again: its attachment lies in between, and
    one that started after this process was last seen is another.

    One that `mpsbar run --summary` made, because there was none, only if asked for.
    """
    for path in _list(0.0 if started is None else started - SAME_START, pid):
        words = _read(path)
        if words is None or words.pid != pid or (words.is_of_parent and not or_of_parent):
            continue
        if last_seen is not None and (words.started or 0.0) > last_seen + SAME_START:
            continue
        if started is None or words.attached >= started - SAME_START:
            return words
    return None


def complete_fallbacks(pid: int, since: float, fallbacks: Fallbacks) -> None:
    """Put what `mpsbar run --explain` knows into the record of a process: it read torch's own log,
    which is printed after the record was left. Nothing where there is none."""
    rows = [_build_row(operation) for operation in fallbacks.operations[:MAX_FALLBACKS]]
    _complete(pid, since, {"fallbacks": rows, "fallbacks_profiled": fallbacks.is_profiled})


def note_end(end: EndedProcess) -> None:
    """Put what `mpsbar run --summary` saw as the parent into the record of a process.

    One that was killed has left none: then the parent leaves one, unless that is turned off.
    OSError, with the folder that is to be used: no record could be left.
    """
    assert end.verdict is not None
    began = end.ended if end.started is None else end.started
    seen: dict[str, object] = {"verdict": build_verdict_json(replace(end.verdict, fallbacks=None))}
    if _complete(end.pid, began, seen, started=began):
        return
    record = {
        "version": 1, "pid": end.pid, "started": began, "attached": began, "ended": end.ended,
        "by_parent": True,
        "name": mask(printable(end.name, _MAX_TEXT)), "memory": {"peak": end.peak}, **seen,
    }  # fmt: skip
    problems = []
    for folder in user_folders.find_run_folders():
        try:
            user_folders.check(folder)
            if os.path.lexists(Path(folder, NO_LAST_WORDS)):
                return
            place = Path(folder, ENDED_FOLDER)
            user_folders.prepare(str(place))
            path = place / (ENDED_NAME % (int(end.ended * 1000), end.pid))
            replace_file(path, json.dumps(record).encode(), follow_links=False)
            for old in _list(0.0)[MAX_ENDED_FILES:]:
                old.unlink(missing_ok=True)
            return
        except OSError as problem:
            text = problem.strerror or str(problem)
            problems.append(OSError(problem.errno, text, str(Path(folder, ENDED_FOLDER))))
    raise problems[0]


def _complete(
    pid: int, since: float, fields: dict[str, object], started: float | None = None
) -> bool:
    """Add fields to the newest record of a process, and its start where it lacks that.

    False: there is none.
    """
    for path in _list(since - SAME_START, pid):
        with suppress(OSError, ValueError, RecursionError):
            if path.lstat().st_uid != os.geteuid():
                continue
            record = json.loads(read_bytes(path, _LARGEST))
            if not isinstance(record, dict) or record.get("pid") != pid:
                continue
            if record.get("started") is None and started is not None:
                record["started"] = started
            data = json.dumps(record | fields).encode()
            if len(data) <= _LARGEST:
                replace_file(path, data, follow_links=False)
            return True
    return False


def _build_row(operation: FallbackOperation) -> list[object]:
    return [
        operation.name, operation.count, operation.where, operation.seconds, operation.copied,
    ]  # fmt: skip


def apply_setting(is_on: bool) -> None:
    """Tell the agents, by a file in each run directory; without last words there are no records.

    OSError: not all of them can be told; the others were.
    """
    problems = []
    for folder in user_folders.find_run_folders():
        marker = Path(folder) / NO_LAST_WORDS
        try:
            if not is_on:
                user_folders.prepare(folder)
                marker.touch(0o600)
            elif os.path.lexists(marker):
                marker.unlink(missing_ok=True)
        except OSError as problem:
            problems.append(problem)
    for path in [] if is_on else _list(0.0):
        try:
            path.unlink(missing_ok=True)
        except OSError as problem:
            problems.append(problem)
    if problems:
        raise problems[0]


def _list(since: float, pid: int | None = None) -> list[Path]:
    """Lists the records, the newest first."""
    paths = []
    for directory in user_folders.find_run_folders():
        folder = os.path.join(directory, ENDED_FOLDER)  # noqa: PTH118 - hundreds of names
        try:
            user_folders.check(directory)
            user_folders.check(folder)
            names = os.listdir(folder)  # noqa: PTH208 - hundreds of names
        except OSError:
            continue
        for name in names:
            match = _NAME.fullmatch(name)
            if match is None or int(match[1]) / 1000 < since:
                continue
            if pid is None or int(match[2]) == pid:
                paths.append((match[1], Path(folder, name)))
    paths.sort(reverse=True)
    return [path for _, path in paths[:_MAX_FILES]]


def _read(path: Path) -> LastWords | None:
    try:
        status = path.lstat()
        if status.st_uid != os.geteuid():
            return None
    except OSError:
        return None
    return read_json(path, _LARGEST, parse_last_words)


def parse_last_words(record: Any) -> LastWords | None:
    if not isinstance(record, dict) or record.get("version") != 1:
        return None
    pid, parent = _number(record.get("pid"), 1 << 31), _number(record.get("parent"), 1 << 31)
    attached, ended = _number(record.get("attached"), 1e11), _number(record.get("ended"), 1e11)
    if not isinstance(pid, int) or not pid or attached is None or ended is None:
        return None
    if attached > ended:
        return None
    command = record.get("command")
    given = command[:20] if isinstance(command, list) else ()
    words = tuple(clean_text(item, _MAX_TEXT) for item in given)
    notebook, executable = (record.get(name) for name in ("notebook", "executable"))
    name = name_process(
        words,
        clean_text(notebook, _MAX_TEXT) if isinstance(notebook, str) else None,
        None,
        clean_text(executable, _MAX_TEXT) if isinstance(executable, str) else None,
    )
    started = _number(record.get("started"), 1e11)
    verdict = parse_verdict_json(record.get("verdict"))
    fallbacks = _parse_fallbacks(record)
    is_of_parent = record.get("by_parent") is True
    if is_of_parent and verdict is None:
        return None
    if is_of_parent or not words:
        name = clean_text(record.get("name"), _MAX_TEXT)
    return LastWords(
        pid, float(attached), float(ended), _parse_error(record.get("error")),
        name, parent if isinstance(parent, int) and parent else None,
        _parse_counts(record.get("memory")), _parse_frameworks(record.get("frameworks")),
        fallbacks, fallbacks is not None or record.get("fallback_seen", "") is None,
        float(started) if started is not None and started <= ended else None, verdict,
        is_of_parent,
    )  # fmt: skip


def _parse_error(value: Any) -> RaisedError | None:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return None
    name = value["type"][:100]
    return RaisedError(
        name if _PATTERN.fullmatch(name) else "exception",
        clean_text(value.get("text"), _MAX_TEXT).strip(),
        clean_text(value.get("where"), _MAX_TEXT)[:120],
        value.get("is_main") is True,
    )


def _parse_counts(value: Any) -> dict[str, int]:
    items = list(value.items())[:20] if isinstance(value, dict) else []
    return {
        printable(name, 20): number
        for name, value in items
        if isinstance(name, str) and isinstance(number := _number(value, _MAX_NUMBER), int)
    }


def _parse_frameworks(value: Any) -> dict[str, str]:
    items = list(value.items())[:10] if isinstance(value, dict) else []
    return {clean_text(name, 20): clean_text(version, 40) for name, version in items}


def _parse_fallbacks(record: dict[str, Any]) -> Fallbacks | None:
    torch = _parse_frameworks(record.get("frameworks")).get("torch")
    if operations := parse_operations(record.get("fallbacks")):
        is_profiled = record.get("fallbacks_profiled") is True
        return Fallbacks(tuple(operations[:MAX_FALLBACKS]), torch, is_profiled)
    seen = record.get("fallback_seen")
    if isinstance(seen, list) and len(seen) == 2:
        first = parse_operations([[seen[0], 1, seen[1]]])
        return Fallbacks(tuple(first), torch, is_counted=False) if first else None
    return None


def _number(value: Any, most: float) -> int | float | None:
    return value if is_number(value, most) else None
