"""Keeps the results of `mpsbar probe --deep`, and what an unfinished one has measured so far."""

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpsbar.agent import user_folders
from mpsbar.core.errors import UserError
from mpsbar.dtypes.deep_child import IDENTITY
from mpsbar.dtypes.deep_results import (
    DeepCell,
    DeepProbe,
    build_deep_cell,
    build_deep_record,
    parse_deep_record,
)
from mpsbar.dtypes.result_files import NAMED_BY, list_files, name_file, prepare_folder
from mpsbar.dtypes.results import read_record
from mpsbar.system import paths
from mpsbar.system.files import log_refused, read_bytes, replace_file

_LARGEST = 32 << 20
_PARTIAL = ".partial"


def find_folder() -> Path | None:
    folder = paths.probe_folder()
    return None if folder is None else folder / "deep"


def write_deep_result(probe: DeepProbe) -> Path | None:
    """Writes the result of a finished run of all operations, or returns None. Raises OSError."""
    file = name_file(find_folder(), [getattr(probe, name) for name in NAMED_BY])
    if file is None or probe.ended != "ok" or probe.only is not None:
        return None
    _prepare(file.parent)
    replace_file(file, json.dumps(build_deep_record(probe)).encode())
    return file


def read_deep_result(file: Path) -> DeepProbe:
    return read_record(file, parse_deep_record, _LARGEST)


def find_deep_result() -> DeepProbe | None:
    """Finds the newest result there is."""
    for file in _list_files("*.json"):
        with contextlib.suppress(UserError):
            return read_deep_result(file)
    return None


def _list_files(pattern: str) -> list[Path]:
    """Lists our folder's files, the newest first; none if others could have changed them."""
    folder = find_folder()
    try:
        return list_files(folder, pattern)
    except OSError as problem:
        if folder is not None:
            log_refused(folder, problem)
        return []


def _prepare(folder: Path) -> None:
    user_folders.prepare(str(folder.parent))
    prepare_folder(folder)


def read_partial(python: str) -> dict[str, Any] | None:
    """Reads what the newest unfinished run of this Python measured: identity and cells."""
    for file in _list_files(f"*{_PARTIAL}"):
        try:
            lines = read_bytes(file, _LARGEST).split(b"\n")
            header = json.loads(lines[0])
            if not isinstance(header, dict) or header.get("python") != python:
                continue
        except (OSError, ValueError, RecursionError):
            continue
        return {**header, "cells": dict(_parse_lines(lines[1:])), "file": file}
    return None


def _parse_lines(lines: Sequence[bytes]) -> list[tuple[str, DeepCell]]:
    """The last line may be cut short: the run was killed while it was written."""
    found = []
    for line in lines:
        try:
            answer = json.loads(line)
            name = str(answer["cell"])
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        found.append((name, build_deep_cell(name, answer)))
    return found


class PartialFile:
    """Appends what is measured to a file at once, so that a run can be resumed."""

    def __init__(self, identity: Mapping[str, Any], python: str, is_resumed: bool) -> None:
        """Opens the file; raises OSError if it cannot be written."""
        file = name_file(find_folder(), [identity.get(name) for name in NAMED_BY])
        self._file = None if file is None else file.with_name(file.name + _PARTIAL)
        self._handle: int | None = None
        if self._file is None:
            return
        _prepare(self._file.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        if not is_resumed:
            with contextlib.suppress(FileNotFoundError):
                self._file.unlink()
        self._handle = os.open(self._file, flags, 0o600)
        if not is_resumed:
            header = {name: identity.get(name) for name in IDENTITY}
            self._write([{**header, "python": python}])
        else:
            os.write(self._handle, b"\n")  # after a line that was cut short

    def add(self, answers: Sequence[Mapping[str, Any]]) -> None:
        self._write(answers)

    def close(self, is_finished: bool) -> None:
        """Closes the file, and removes it if the run has finished: that has a result of its own."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        if is_finished and self._file is not None:
            self._file.unlink(missing_ok=True)

    def _write(self, values: Sequence[Mapping[str, Any]]) -> None:
        data = b"".join(json.dumps(value).encode() + b"\n" for value in values)
        while data and self._handle is not None:
            data = data[os.write(self._handle, data) :]
