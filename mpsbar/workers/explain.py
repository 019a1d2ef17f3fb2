"""The environment for `mpsbar run --explain`, and the results that its processes left behind.

Each leaves a file of the operations it counted (agent/fallbacks.py) and, where torch printed its
profile log, one with the end of its stderr.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpsbar.agent.conventions import EXPLAIN_VARIABLE, PROFILE_VARIABLE
from mpsbar.core.fallbacks import (
    FallbackOperation,
    Fallbacks,
    complete_by_profile,
    merge_operations,
    parse_operations,
    parse_profile,
)
from mpsbar.core.untrusted import clean_text
from mpsbar.system.files import read_bytes, read_json

_PROFILE = "PYTORCH_MPS_LOG_PROFILE_INFO"
_STATISTICS = "64"  # CPU_FALLBACK_STATS of torch's MPSProfiler.h: a table at the end
_NAME = re.compile(r"([1-9]\d{0,9})\.json")
_LARGEST = 1 << 20
_MAX_FILES = 1000
_MAX_LINES = 200


@dataclass(frozen=True, slots=True)
class Explanation:
    fallbacks: Fallbacks
    by_process: Mapping[int, Fallbacks] = field(default_factory=dict)  # by pid
    stderr: tuple[str, ...] = ()  # what the processes printed last and torch's log is no part of


def build_explain_environment(environ: Mapping[str, str], folder: str) -> dict[str, str]:
    """Returns variables for the command; a profile log that the user asked for stays as it is."""
    added = {EXPLAIN_VARIABLE: folder}
    if _PROFILE not in environ:
        added |= {_PROFILE: _STATISTICS, PROFILE_VARIABLE: "1"}
    return added


def read_explanation(folder: Path) -> Explanation:
    """Returns all that the processes of a run have left in `folder`."""
    by_process: dict[int, Fallbacks] = {}
    stderr: list[str] = []
    for name in _list_names(folder):
        match = _NAME.fullmatch(name)
        record = _read_record(folder / name) if match else None
        if match is None or record is None:
            continue
        profiled, others, has_log = _read_log(folder / f"{match[1]}.log")
        counted = complete_by_profile(parse_operations(record.get("operations")), profiled)
        by_process[int(match[1])] = Fallbacks(
            merge_operations(counted), clean_text(record.get("torch")) or None, has_log,
            record.get("is_final") is True,
        )  # fmt: skip
        stderr += others
    processes = by_process.values()
    return Explanation(
        Fallbacks(
            merge_operations(row for process in processes for row in process.operations),
            next((process.torch for process in processes if process.torch), None),
            any(process.is_profiled for process in processes),
            all(process.is_complete for process in processes),
        ),
        by_process,
        tuple(stderr[:_MAX_LINES]),
    )


def _list_names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:_MAX_FILES]  # noqa: PTH208 - names
    except OSError:  # the program has removed it: nothing is known
        return []


def _read_record(path: Path) -> dict[str, Any] | None:
    def parse(record: Any) -> dict[str, Any] | None:
        return record if isinstance(record, dict) and record.get("version") == 1 else None

    return read_json(path, _LARGEST, parse)


def _read_log(path: Path) -> tuple[list[FallbackOperation], list[str], bool]:
    try:
        text = read_bytes(path, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return [], [], False
    return parse_profile(text)
