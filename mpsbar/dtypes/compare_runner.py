"""Runs the child process of `mpsbar compare`: the user's file in a Python that has torch."""

import importlib.resources
import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mpsbar.agent.secrets import mask
from mpsbar.core.dtype_results import last_line
from mpsbar.core.naming import printable
from mpsbar.core.signals import name_exit
from mpsbar.dtypes.compare.text import DTYPES, build_headline
from mpsbar.dtypes.compare_child import MARK
from mpsbar.dtypes.first_python import run_in_first
from mpsbar.system.child_process import (
    ChildAnswer,
    StartFailure,
    classify_start,
    start_script,
)

# The files of the package, each after those that it imports.
MODULES = (
    "text", "render", "structures", "target", "recording", "free_ram", "module_objects",
    "model_state", "same_random", "alone", "tolerance", "whole_run", "checking", "measuring",
    "task", "results", "comparison",
)  # fmt: skip
_SOURCES = importlib.resources.files("mpsbar.dtypes")
_MAX_BYTES = 16 << 20
_SECONDS_TO_READ_ON = 1.0  # after a cancel

CompareEnd = Literal["ok", "no_torch", "failed", "crashed", "cancelled"] | StartFailure
OnProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class FileComparison:
    """The end and the result of a comparison; `data` is that of mpsbar.compare()."""

    python: str
    ended: CompareEnd
    data: dict[str, Any] | None = None
    text: str | None = None
    trace: tuple[str, ...] = ()
    crashed_in: str | None = None  # the dtype


@dataclass(slots=True)
class CompareRunner:
    """`run` once, on any thread; `cancel` from any other."""

    pythons: Sequence[str]
    file: str
    function: str
    options: dict[str, Any]
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        self._cancelled.set()

    def run(self, on_progress: OnProgress) -> FileComparison:
        """Compare in the first Python that has torch; what they do raises no exception here."""
        result = run_in_first(self.pythons, lambda python: self._run_in(python, on_progress))
        return result or FileComparison("", "no_torch")

    def _run_in(self, python: str, on_progress: OnProgress) -> FileComparison:
        """Runs the rest in a new process if Python crashes, which is the result of that dtype."""
        wanted = list(self.options.get("dtypes") or DTYPES)
        results: list[FileComparison] = []
        while wanted:
            results.append(self._run_once(python, wanted, on_progress))
            last = results[-1]
            if last.ended != "crashed" or last.crashed_in is None:
                break
            done = 0 if last.data is None else len(last.data["dtypes"])
            wanted = wanted[done + 1 :]
        return _join(results)

    def _run_once(
        self, python: str, wanted: Sequence[str], on_progress: OnProgress
    ) -> FileComparison:
        try:
            return self._listen(python, wanted, on_progress)
        except (OSError, ValueError) as error:
            ended = classify_start(error)
            text = None if ended == "no_python" else str(error)
            return FileComparison(python, ended, text=text)

    def _listen(
        self, python: str, wanted: Sequence[str], on_progress: OnProgress
    ) -> FileComparison:
        options = {**self.options, "dtypes": list(wanted)}
        plan = {"file": self.file, "function": self.function, "options": options}
        output, last_read = _ChildOutput(), 0.0
        with start_script(python, _SOURCES / "compare_child.py", MARK, _build_input(plan)) as child:
            for answers in child.read_answers():
                for answer in answers:
                    _report_progress(answer, on_progress)
                    output.add(answer)
                if last_read and (not answers or time.monotonic() > last_read):
                    return FileComparison(python, "cancelled", data=output.data)
                if not last_read and self._cancelled.is_set():
                    # A dtype that was finished before may still be in the pipe.
                    last_read = time.monotonic() + _SECONDS_TO_READ_ON
                if output.size > _MAX_BYTES:
                    break
            return _parse(python, output, child.tail, child.end())


@dataclass(slots=True)
class _ChildOutput:
    """The answers of one child process so far."""

    stages: dict[str, ChildAnswer] = field(default_factory=dict)
    data: dict[str, Any] | None = None  # the result, or what is known so far
    at: str = ""  # the dtype it is at
    parts: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, answer: ChildAnswer) -> None:
        stage = str(answer.get("stage"))
        if stage == "part":
            self.parts.append(str(answer.get("text")))
            self.size += len(self.parts[-1])
        elif stage == "progress":
            self.at = str(answer.get("name"))[:40]
        else:
            self.stages[stage] = answer
        if stage in ("so_far", "end") and self.parts:
            data = _mask_all(json.loads("".join(self.parts)))
            self.data, self.parts, self.size = data, [], 0


def _build_input(plan: dict[str, Any]) -> bytes:
    """Builds one line of the plan and the files' texts: the child's Python may lack mpsbar."""
    folder = _SOURCES / "compare"
    texts = [[name, (folder / f"{name}.py").read_text("utf-8")] for name in MODULES]
    return json.dumps({**plan, "texts": texts}).encode() + b"\n"


def _report_progress(answer: ChildAnswer, on_progress: OnProgress) -> None:
    name, done, total = (answer.get(key) for key in ("name", "done", "total"))
    if answer.get("stage") == "progress" and isinstance(done, int) and isinstance(total, int):
        on_progress(str(name)[:40], done, total)


def _parse(python: str, output: _ChildOutput, tail: bytes, code: int) -> FileComparison:
    if "no_torch" in output.stages:
        return FileComparison(python, "no_torch")
    if (failed := output.stages.get("failed")) is not None:
        trace = failed.get("trace")
        lines = tuple(mask(str(line)) for line in trace) if isinstance(trace, list) else ()
        text = mask(str(failed.get("text")))[:2000]
        return FileComparison(python, "failed", text=text, trace=lines)
    if "end" in output.stages and output.data is not None:
        return FileComparison(python, "ok", data=output.data)
    complaint = last_line(tail)
    how = name_exit(code, sys.platform)
    last = "" if complaint is None else f": {printable(mask(complaint))}"
    at = output.at if output.at not in ("", "cpu") else None
    return FileComparison(python, "crashed", output.data, how + last, crashed_in=at)


# A dtype of which nothing is known but that Python crashed in it.
_NOTHING: dict[str, Any] = {
    "state": "crashed", "eps": None, "largest_number": None, "culprits": [], "followers": [],
    "raised": None, "not_run": None, "out_of_memory": False, "nonfinite": None, "fallbacks": [],
    "output": None,
    "unexplained": None, "loss": None, "gradients": None, "checked": 0, "unchecked": [],
    "seconds": None, "spread": None, "runs": None, "speed_to_float32": None, "speed_to_cpu": None,
    "peak": None, "peak_is_sampled": False, "peak_to_float32": None, "notes": [],
}  # fmt: skip


def _join(results: Sequence[FileComparison]) -> FileComparison:
    """Joins the dtypes of all processes; speeds and memory relate to the first's float32."""
    last = results[-1]
    whole = [result.data for result in results if result.data is not None]
    if not whole:
        return last
    data = {**whole[0], "dtypes": {}}
    for result in results:
        if result.data is not None:
            data["dtypes"].update(result.data["dtypes"])
        if result.crashed_in is not None:
            data["dtypes"][result.crashed_in] = {**_NOTHING, "text": result.text}
    base = data["dtypes"].get("float32") or _NOTHING
    for measured in data["dtypes"].values():
        if measured["seconds"] and base["seconds"]:
            measured["speed_to_float32"] = base["seconds"] / measured["seconds"]
        if measured["peak"] and base["peak"]:
            measured["peak_to_float32"] = measured["peak"] / base["peak"]
    data["notes"] = list(dict.fromkeys(note for part in whole for note in part["notes"]))
    data["headline"] = build_headline(data)
    ended = "ok" if last.crashed_in is not None else last.ended
    return FileComparison(last.python, ended, data, last.text, last.trace)


def _mask_all(value: Any) -> Any:
    """Masks secrets in every text: what a model raises may hold a password."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list):
        return [_mask_all(item) for item in value]
    if isinstance(value, dict):
        return {mask(key): _mask_all(item) for key, item in value.items()}
    return value
