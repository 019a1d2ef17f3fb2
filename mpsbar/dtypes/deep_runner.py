"""Runs `mpsbar probe --deep` in several child processes: a crash or a hang costs one cell."""

import importlib.resources
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from mpsbar.core.dtype_results import ProbeEnded, Progress, find_complaint, parse_text
from mpsbar.core.errors import reason_of
from mpsbar.core.signals import name_exit
from mpsbar.dtypes.deep_child import MARK
from mpsbar.dtypes.deep_files import PartialFile, read_partial
from mpsbar.dtypes.deep_results import DTYPES, DeepCell, DeepProbe, build_deep_cell
from mpsbar.dtypes.first_python import run_in_first
from mpsbar.dtypes.runner import FROM_OUTSIDE, parse_death
from mpsbar.system.child_process import (
    ChildAnswer,
    ChildProcess,
    classify_start,
    start_script,
)

# Bytes above what torch and its samples take, for each child process.
DEEP_CEILING = 512 << 20
# To import torch and its samples from a slow disk on a busy machine; to compile a kernel.
START_SECONDS = 300.0
CELL_SECONDS = 60.0
_MAX_CHILDREN = 4
_MAX_RESTARTS = 400  # of one share, each costs another import of torch
_MAX_CRASHES = 3  # of one operation: its other dtypes are not tried
_MAX_FALSE_STARTS = 2
_MAX_OPERATIONS = 5000
_SOURCES = importlib.resources.files("mpsbar.dtypes")


@dataclass(slots=True)
class _Share:
    """The part of the operations that one child process after the other goes through."""

    number: int
    cells: list[str] = field(default_factory=list)  # in order
    killed: set[str] = field(default_factory=set)
    crashes: Counter[str] = field(default_factory=Counter)  # by operation
    false_starts: int = 0
    has_started: bool = False
    is_over: bool = False
    is_full: bool = False
    tail: bytes = b""


class DeepRunner:
    """One deep probe: call `run` once, on any thread, and `cancel` from any other."""

    def __init__(  # noqa: PLR0913 - limits that tests lower
        self,
        pythons: Sequence[str],
        device: str = "auto",
        *,
        only: str | None = None,
        restart: bool = False,
        children: int | None = None,
        ceiling: int = DEEP_CEILING,
        start_seconds: float = START_SECONDS,
        cell_seconds: float = CELL_SECONDS,
    ) -> None:
        self._pythons, self._device, self._only = pythons, device, only
        self._restart, self._ceiling = restart, ceiling
        self._count = children or _count_children(only)
        self._start_seconds, self._cell_seconds = start_seconds, cell_seconds
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self._python = ""
        self._stages: dict[str, ChildAnswer] = {}
        self._cells: dict[str, DeepCell] = {}
        self._expected: dict[str, bool | None] = {}
        self._total: int | None = None
        self._resume: dict[str, Any] | None = None
        self._partial: PartialFile | None = None
        self.resumed = 0  # cells that an earlier run has measured
        self.problem: str | None = None  # why the run cannot be resumed later

    def cancel(self) -> None:
        """Make `run` return at once, with what was measured so far."""
        self._cancelled.set()

    def run(self, on_progress: Callable[[Progress], None]) -> DeepProbe:
        """Probe the first of the Pythons that has torch; what they do raises no exception here."""
        probe = run_in_first(self._pythons, lambda python: self._run_in(python, on_progress))
        return probe or DeepProbe("", "no_torch")

    def _run_in(self, python: str, on_progress: Callable[[Progress], None]) -> DeepProbe:
        began, wall = time.monotonic(), time.time()
        self._reset()
        self._python = python
        on_progress(Progress(0, None))
        if self._only is None and not self._restart:
            self._resume = read_partial(python)
        shares = [_Share(number) for number in range(self._count)]
        with ThreadPoolExecutor(self._count, thread_name_prefix="mpsbar-deep") as pool:
            running = [pool.submit(self._finish, python, share, on_progress) for share in shares]
            ends = [future.result() for future in running]
        ended = self._judge_end(ends)
        if self._partial is not None:
            self._partial.close(is_finished=ended == "ok")
        interpreter, loaded, device = (
            self._stages.get(stage, {}) for stage in ("python", "import", "device")
        )
        values: dict[str, Any] = {
            name: parse_text(interpreter.get(name), 4096)
            for name in ("prefix", "version", "system", "os", "fallback")
        }
        return DeepProbe(
            python=python, ended=ended, **values, torch=parse_text(loaded.get("version")),
            device=parse_text(device.get("device")) or self._device,
            device_name=parse_text(device.get("name")), only=self._only,
            error=self._find_error(ended, shares), total=self._total or 0, time=wall,
            seconds=time.monotonic() - began,
            cells=tuple(self._cells[name] for name in sorted(self._cells, key=_order)),
        )  # fmt: skip

    def _finish(
        self, python: str, share: _Share, on_progress: Callable[[Progress], None]
    ) -> ProbeEnded:
        """Start one child process after the other, until every cell of the share is known."""
        try:
            for _ in range(_MAX_RESTARTS):
                code = self._run_once(python, share, on_progress)
                if self._cancelled.is_set():
                    return "cancelled"
                if share.is_over:
                    return "ok"
                if not share.is_full:
                    self._judge_death(share, code)
                if share.false_starts >= _MAX_FALSE_STARTS:
                    return parse_death(code)
        except (OSError, ValueError) as error:
            share.tail = str(error).encode()
            return classify_start(error)
        return "stopped"

    def _run_once(
        self, python: str, share: _Share, on_progress: Callable[[Progress], None]
    ) -> int | None:
        """Run one child process; return its exit code, or None if it hung and was ended."""
        share.has_started = share.is_over = share.is_full = False
        script, plan = _SOURCES / "deep_child.py", self._build_input(share)
        with start_script(python, script, MARK, plan) as child:
            self._listen(child, share, on_progress)
            share.tail = child.tail
            return None if child.has_hung else child.end()

    def _build_input(self, share: _Share) -> bytes:
        with self._lock:
            skip = [cell for cell in share.cells if cell in self._cells]
        plan: dict[str, Any] = {
            "device": self._device, "dtypes": DTYPES, "share": share.number, "shares": self._count,
            "only": self._only, "skip": skip, "ceiling": self._ceiling,
        }  # fmt: skip
        if self._resume is not None:
            resume = {key: value for key, value in self._resume.items() if key != "file"}
            plan["resume"] = {**resume, "cells": list(self._resume["cells"])}
        return json.dumps(plan).encode() + b"\n"

    def _listen(
        self, child: ChildProcess, share: _Share, on_progress: Callable[[Progress], None]
    ) -> None:
        child.allow(self._start_seconds)
        is_first = True
        for answers in child.read_answers():
            if answers:
                is_first = is_first and all(answer.get("stage") != "cell" for answer in answers)
                self._add(share, answers)
                child.allow(self._start_seconds if is_first else self._cell_seconds)
                if self._total is not None:
                    on_progress(Progress(len(self._cells), self._total))
            if self._cancelled.is_set() or share.is_over or share.is_full:
                return

    def _add(self, share: _Share, answers: Sequence[ChildAnswer]) -> None:
        with self._lock:
            measured = []
            for answer in answers:
                stage, cell = answer.get("stage"), answer.get("cell")
                if stage == "cell" and isinstance(cell, str) and len(cell) < 200:
                    answer["expected"] = self._expected.get(cell)
                    self._cells.setdefault(cell, build_deep_cell(cell, answer))
                    measured.append(answer)
                elif stage == "device":
                    self._stages.setdefault(stage, answer)
                    self._begin(share, answer)
                elif stage == "end":
                    share.is_over = True
                elif stage == "full":
                    share.is_full = True
                elif isinstance(stage, str):
                    self._stages.setdefault(stage, answer)
            self._keep(measured)

    def _begin(self, share: _Share, answer: ChildAnswer) -> None:
        operations, total = answer.get("operations"), answer.get("total")
        if not answer.get("device") or not isinstance(operations, dict):
            return
        share.has_started = True
        share.cells = []
        for name, letters in list(operations.items())[:_MAX_OPERATIONS]:
            for dtype, letter in zip(DTYPES, str(letters), strict=False):
                share.cells.append(f"{name[:150]}/{dtype}")
                self._expected[share.cells[-1]] = {"y": True, "n": False}.get(letter)
        if self._total is None:
            self._total = (total if isinstance(total, int) else 0) * len(DTYPES)
            is_resumed = bool(answer.get("resumed")) and self._resume is not None
            if is_resumed and self._resume is not None:
                self._cells.update(self._resume["cells"])
                self.resumed = len(self._cells)
            if self._only is None:
                self._open_partial(answer, is_resumed)

    def _open_partial(self, device: ChildAnswer, is_resumed: bool) -> None:
        python = self._stages.get("python", {})
        identity = {
            **python, "torch": self._stages.get("import", {}).get("version"),
            "device": device.get("device"),
        }  # fmt: skip
        try:
            self._partial = PartialFile(identity, self._python, is_resumed)
        except OSError as problem:
            self.problem = reason_of(problem)

    def _keep(self, answers: Sequence[ChildAnswer]) -> None:
        if self._partial is None or not answers:
            return
        kept = [{k: v for k, v in answer.items() if k != "stage"} for answer in answers]
        try:
            self._partial.add(kept)
        except OSError as problem:
            self.problem, self._partial = reason_of(problem), None

    def _judge_death(self, share: _Share, code: int | None) -> None:
        """Blame the cell that was next, unless the child process never got that far."""
        with self._lock:
            cell = next((name for name in share.cells if name not in self._cells), None)
            if not share.has_started or cell is None:
                share.false_starts += 1
                return
            if code is not None and -code in FROM_OUTSIDE and cell not in share.killed:
                share.killed.add(cell)
                return
            state = "hung" if code is None else "crashed"
            text = None if code is None else name_exit(code, sys.platform)
            self._blame(cell, state, text)
            operation = cell.rpartition("/")[0]
            share.crashes[operation] += 1
            if share.crashes[operation] >= _MAX_CRASHES:
                for other in share.cells:
                    if other.rpartition("/")[0] == operation and other not in self._cells:
                        self._blame(other, "unknown", "not tried: others of it crashed or hung")

    def _blame(self, cell: str, state: str, text: str | None) -> None:
        expected = self._expected.get(cell)
        answer = {"cell": cell, "state": state, "text": text, "expected": expected}
        self._cells[cell] = build_deep_cell(cell, answer)
        self._keep([answer])

    def _judge_end(self, ends: Sequence[ProbeEnded]) -> ProbeEnded:
        if "cancelled" in ends:
            return "cancelled"
        for end in ("unsafe", "no_python", "not_python"):
            if end in ends:
                return end
        loaded, device = self._stages.get("import"), self._stages.get("device")
        bad = [end for end in ends if end != "ok"]
        if loaded is None:
            is_python = "python" in self._stages or "hung" in ends
            return bad[0] if is_python and bad else "not_python"
        if "version" not in loaded:
            is_missing = "No module named 'torch'" in str(loaded.get("text"))
            return "no_torch" if is_missing else "broken_torch"
        if device is not None and not device.get("device"):
            return "no_device"
        if bad and not self._cells:
            return bad[0]
        return "stopped" if bad else "ok"

    def _find_error(self, ended: ProbeEnded, shares: Sequence[_Share]) -> str | None:
        if ended in ("ok", "cancelled", "no_torch", "no_python"):
            return None
        texts = [self._stages.get(name, {}).get("text") for name in ("import", "device")]
        return find_complaint(texts, *(share.tail for share in shares))


def _count_children(only: str | None) -> int:
    """Counts one for each core; a name without wildcards is one operation, too little to share."""
    if only is not None and not any(sign in only for sign in "*?["):
        return 1
    return max(1, min(_MAX_CHILDREN, os.cpu_count() or 1))


def _order(name: str) -> tuple[str, int]:
    operation, _, dtype = name.rpartition("/")
    return operation, DTYPES.index(dtype) if dtype in DTYPES else len(DTYPES)
