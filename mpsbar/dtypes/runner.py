"""Runs the dtype probe in child processes: a crash or a hang costs one cell, and it goes on."""

import contextlib
import importlib.resources
import json
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mpsbar.core.dtype_results import (
    Cell,
    Check,
    Probe,
    ProbeEnded,
    Progress,
    build_cell,
    build_speed,
    find_complaint,
    parse_number,
    parse_text,
)
from mpsbar.core.signals import name_exit
from mpsbar.dtypes.dtype_child import MARK, SPEED
from mpsbar.dtypes.first_python import run_in_first
from mpsbar.dtypes.operations import COMPILE
from mpsbar.system.child_process import (
    ChildAnswer,
    ChildProcess,
    classify_start,
    start_script,
)

# Bytes of tensors, above what torch itself takes.
CEILING = 256 << 20
# Enough to import torch from a slow disk on a busy machine, and to compile a first kernel.
START_SECONDS = 120.0
CELL_SECONDS = 30.0
# Each costs another import of torch.
_MAX_RESTARTS = 16
# After so many crashes the other cells of a dtype or an operation are not tried.
_MAX_CRASHES = 3
_MAX_CELLS = 2000
# Signals that somebody else sent: the cell is tried once more.
FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_SOURCES = importlib.resources.files("mpsbar.dtypes")

OnProgress = Callable[[Progress], None]


@dataclass(slots=True)
class _Session:
    """What is known of one Python so far, over all the child processes that were needed."""

    stages: dict[str, ChildAnswer] = field(default_factory=dict)
    cells: list[str] = field(default_factory=list)  # all there are, in order
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    killed: set[str] = field(default_factory=set)
    crashes: Counter[str] = field(default_factory=Counter)  # by dtype and by operation
    memory: int | None = None
    tail: bytes = b""
    has_started: bool = False  # the present child process has reached the cells
    is_over: bool = False  # the present child process said that it is done
    false_starts: int = 0

    def add(self, answer: ChildAnswer) -> None:
        stage = answer.pop("stage", None)
        cell = answer.pop("cell", None)
        self.has_started = self.has_started or stage == "device"
        if stage == "cell" and cell in self.cells:
            self.answers.setdefault(cell, answer)
            used = answer.get("memory")
            if isinstance(used, int):
                self.memory = max(used, self.memory or 0)
        elif stage == "end":
            self.is_over = True
        elif isinstance(stage, str) and stage not in self.stages:
            self.stages[stage] = answer
            cells = answer.get("cells") if stage == "device" else None
            if isinstance(cells, list):
                self.cells = [str(cell)[:100] for cell in cells[:_MAX_CELLS]]

    @property
    def next_cell(self) -> str | None:
        return next((cell for cell in self.cells if cell not in self.answers), None)

    def blame(self, cell: str, state: str, text: str | None = None) -> None:
        """Record why a cell failed; skip cells of a dtype or operation that failed too often."""
        self.answers[cell] = {"state": state, "text": text}
        operation, _, dtype = cell.partition("/")
        self.crashes.update({f"{operation}/", f"/{dtype}"} if dtype else {})
        skipped = tuple(group for group, n in self.crashes.items() if n >= _MAX_CRASHES)
        for other in self.cells:
            if other.startswith(skipped) or other.endswith(skipped):
                self.answers.setdefault(other, {"state": "unknown"})


class ProbeRunner:
    """One probe: call `run` once, on any thread, and `cancel` from any other."""

    def __init__(
        self,
        pythons: Sequence[str],
        device: str = "auto",
        *,
        with_compile: bool = False,
        ceiling: int = CEILING,
        start_seconds: float = START_SECONDS,
        cell_seconds: float = CELL_SECONDS,
    ) -> None:
        self._pythons, self._device, self._ceiling = pythons, device, ceiling
        self._with_compile = with_compile
        self._compile_folder: str | None = None
        self._start_seconds, self._cell_seconds = start_seconds, cell_seconds
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Make `run` return at once, with what was measured so far."""
        self._cancelled.set()

    def run(self, on_progress: OnProgress | None = None) -> Probe:
        """Probe the first of the Pythons that has torch; what they do raises no exception here."""
        probe = run_in_first(self._pythons, lambda p: self._run_in(p, on_progress or _ignore))
        return probe or Probe("", "no_torch")

    def _run_in(self, python: str, on_progress: OnProgress) -> Probe:
        session, start, wall = _Session(), time.monotonic(), time.time()
        try:
            with self._making_compile_folder():
                ended = self._finish(python, session, on_progress)
        except (OSError, ValueError) as error:
            session.tail, ended = str(error).encode(), classify_start(error)
        seconds = time.monotonic() - start
        return _build_probe(python, ended, session, self._ceiling, (wall, seconds))

    @contextlib.contextmanager
    def _making_compile_folder(self) -> Iterator[None]:
        """Makes a folder for what torch.compile writes, and removes it in any case.

        On a full disk there is none, and torch.compile is left out.
        """
        with contextlib.ExitStack() as stack:
            if self._with_compile:
                with contextlib.suppress(OSError):
                    self._compile_folder = stack.enter_context(
                        tempfile.TemporaryDirectory(
                            prefix="mpsbar-compile-", ignore_cleanup_errors=True
                        )
                    )
            yield

    def _finish(self, python: str, session: _Session, on_progress: OnProgress) -> ProbeEnded:
        """Start one child process after the other, until every cell is known."""
        on_progress(Progress(0, None))
        for _ in range(_MAX_RESTARTS):
            code = self._run_once(python, session, on_progress)
            if self._cancelled.is_set():
                return "cancelled"
            cell = session.next_cell
            if session.is_over:
                return _parse_end(session)
            if not session.cells:
                is_python = code is None or "python" in session.stages
                return parse_death(code) if is_python else "not_python"
            if cell is None:
                return "ok"
            if not session.has_started and session.false_starts:
                return "stopped"
            _judge_death(session, cell, code)
        return "stopped" if session.next_cell else "ok"

    def _run_once(self, python: str, session: _Session, on_progress: OnProgress) -> int | None:
        """Run one child process; return its exit code, or None if it hung and was ended."""
        plan = {
            "device": self._device, "skip": list(session.answers), "ceiling": self._ceiling,
            "compile": self._compile_folder,
        }  # fmt: skip
        session.has_started = session.is_over = False
        with start_script(python, _SOURCES / "dtype_child.py", MARK, _build_input(plan)) as child:
            self._listen(child, session, on_progress)
            session.tail = child.tail
            return None if child.has_hung else child.end()

    def _listen(self, child: ChildProcess, session: _Session, on_progress: OnProgress) -> None:
        child.allow(self._start_seconds)
        is_first = True
        for answers in child.read_answers():
            for answer in answers:
                is_first = is_first and answer.get("stage") != "cell"
                session.add(answer)
            if answers:
                # The first cell may compile a kernel, and torch.compile imports half of torch.
                is_long = is_first or (session.next_cell or "").startswith(COMPILE)
                child.allow(self._start_seconds if is_long else self._cell_seconds)
                on_progress(Progress(len(session.answers), len(session.cells) or None))
            if self._cancelled.is_set() or session.is_over:
                return


def _build_input(plan: dict[str, Any]) -> bytes:
    """Builds one line of the plan and the cases' texts: the child's Python has no mpsbar."""
    texts = {
        name: (_SOURCES / f"{name}.py").read_text("utf-8") for name in ("operations", "checks")
    }
    return json.dumps({**texts, **plan}).encode() + b"\n"


def _ignore(_: Progress) -> None:
    pass


def _judge_death(session: _Session, cell: str, code: int | None) -> None:
    """Blame the cell that was next, unless the child process never got that far."""
    if not session.has_started:
        session.false_starts += 1
    elif code is None:
        session.blame(cell, "hung")
    elif -code in FROM_OUTSIDE and cell not in session.killed:
        session.killed.add(cell)
    else:
        session.blame(cell, "crashed", name_exit(code, sys.platform))


def _parse_end(session: _Session) -> ProbeEnded:
    """Returns how the probe ended if the child process came to its end."""
    if session.stages.get("torch", {}).get("found") is False:
        return "no_torch"
    if "version" not in session.stages.get("import", {}):
        return "broken_torch"
    if not session.stages.get("device", {}).get("device"):
        return "no_device"
    return "ok" if session.next_cell is None else "stopped"  # it used too much memory


def parse_death(code: int | None) -> ProbeEnded:
    """Returns how a probe ended whose child process died before the first cell."""
    if code is None:
        return "hung"
    return "crashed" if code < 0 else "exited"


def _build_probe(
    python: str, ended: ProbeEnded, session: _Session, ceiling: int, times: tuple[float, float]
) -> Probe:
    interpreter, loaded, device = (
        session.stages.get(stage, {}) for stage in ("python", "import", "device")
    )
    names = session.cells if device.get("device") else []
    results = [
        build_cell(name, session.answers.get(name, {}))
        for name in names
        if not name.startswith(SPEED)
    ]
    speeds = [
        build_speed(name[len(SPEED) :], session.answers.get(name, {}))
        for name in names
        if name.startswith(SPEED)
    ]
    dtypes, cores = device.get("dtypes"), device.get("cores")
    return Probe(
        python=python,
        ended=ended,
        prefix=parse_text(interpreter.get("prefix"), 4096),
        version=parse_text(interpreter.get("version")),
        torch=parse_text(loaded.get("version")),
        system=parse_text(interpreter.get("system")),
        os=parse_text(interpreter.get("os")),
        device=parse_text(device.get("device") or device.get("missing")),
        device_name=parse_text(device.get("name")),
        torch_file=parse_text(session.stages.get("torch", {}).get("file"), 4096),
        capability=tuple(map(str, dtypes)) if isinstance(dtypes, list) else None,
        fallback=parse_text(interpreter.get("fallback")),
        error=_find_error(ended, session),
        cells=tuple(result for result in results if isinstance(result, Cell)),
        checks=tuple(result for result in results if isinstance(result, Check)),
        speeds=tuple(speeds),
        load=parse_number(device.get("load")),
        cores=cores if isinstance(cores, int) else None,
        time=times[0],
        seconds=times[1],
        memory=session.memory,
        ceiling=ceiling,
    )


def _find_error(ended: ProbeEnded, session: _Session) -> str | None:
    if ended in ("ok", "cancelled", "no_torch", "no_python"):
        return None
    texts = (session.stages.get(name, {}).get("text") for name in ("torch", "import", "device"))
    return find_complaint(texts, session.tail)
