"""Runs the child process of `mpsbar compare`: the user's file in a Python that has torch."""

import importlib.resources
import json
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mpsbar.core.naming import printable
from mpsbar.core.secrets import mask
from mpsbar.dtypes.compare_child import MARK
from mpsbar.system.child_process import ChildAnswer, start_child
from mpsbar.system.ownership import NotTrusted

# The files of the package, each after those that it imports.
MODULES = (
    "text", "structures", "place", "recording", "model_state", "same_random", "alone",
    "tolerance", "whole_run", "checking", "measuring", "task", "results", "interrupts",
    "comparison",
)  # fmt: skip
_SOURCES = importlib.resources.files("mpsbar.dtypes")
_MOST_BYTES = 16 << 20

Ended = Literal["ok", "no_torch", "no_python", "failed", "crashed", "cancelled", "unsafe"]
OnProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class FileComparison:
    """How it ended; `data` is that of mpsbar.compare()."""

    python: str
    ended: Ended
    data: dict[str, Any] | None = None
    text: str | None = None
    trace: tuple[str, ...] = ()


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
        result = FileComparison("", "no_torch")
        for python in self.pythons:
            result = self._run_in(python, on_progress)
            if result.ended not in ("no_torch", "no_python"):
                break
        return result

    def _run_in(self, python: str, on_progress: OnProgress) -> FileComparison:
        try:
            return self._listen(python, on_progress)
        except NotTrusted as problem:
            return FileComparison(python, "unsafe", text=str(problem))
        except (OSError, ValueError) as error:
            return FileComparison(python, "no_python", text=str(error))

    def _listen(self, python: str, on_progress: OnProgress) -> FileComparison:
        plan = {"file": self.file, "function": self.function, "options": self.options}
        heard: list[ChildAnswer] = []
        with (
            importlib.resources.as_file(_SOURCES / "compare_child.py") as script,
            start_child(python, [str(script)], MARK, _build_input(plan)) as child,
        ):
            for answers in child.read_answers():
                for answer in answers:
                    _tell(answer, on_progress)
                heard += [answer for answer in answers if answer.get("stage") != "progress"]
                if self._cancelled.is_set():
                    return FileComparison(python, "cancelled")
                if sum(len(str(answer.get("text"))) for answer in heard) > _MOST_BYTES:
                    break
            return _parse(python, heard, child.tail, child.end())


def _build_input(plan: dict[str, Any]) -> bytes:
    """The plan as one line, with the text of the files: the child's Python may lack mpsbar."""
    folder = _SOURCES / "compare"
    texts = [[name, (folder / f"{name}.py").read_text("utf-8")] for name in MODULES]
    return json.dumps({**plan, "texts": texts}).encode() + b"\n"


def _tell(answer: ChildAnswer, on_progress: OnProgress) -> None:
    name, done, total = (answer.get(key) for key in ("name", "done", "total"))
    if answer.get("stage") == "progress" and isinstance(done, int) and isinstance(total, int):
        on_progress(str(name)[:40], done, total)


def _parse(python: str, heard: Sequence[ChildAnswer], tail: bytes, code: int) -> FileComparison:
    stages = {str(answer.get("stage")): answer for answer in heard}
    if "no_torch" in stages:
        return FileComparison(python, "no_torch")
    if (failed := stages.get("failed")) is not None:
        trace = failed.get("trace")
        lines = tuple(mask(str(line)) for line in trace) if isinstance(trace, list) else ()
        text = mask(str(failed.get("text")))[:2000]
        return FileComparison(python, "failed", text=text, trace=lines)
    parts = [str(answer.get("text")) for answer in heard if answer.get("stage") == "part"]
    if "end" in stages and parts:
        return FileComparison(python, "ok", data=_mask_all(json.loads("".join(parts))))
    said = tail.decode(errors="replace").strip().splitlines()
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    last = f": {printable(mask(said[-1]))}" if said else ""
    return FileComparison(python, "crashed", text=how + last)


def _mask_all(value: Any) -> Any:
    """What a model raises may hold a password: no text of the result shows one."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list):
        return [_mask_all(each) for each in value]
    if isinstance(value, dict):
        return {mask(key): _mask_all(each) for key, each in value.items()}
    return value
