"""Runs the dtype probe in somebody's Python: a crash or a hang costs one cell, and it goes on."""

import contextlib
import importlib.resources
import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mpsbar.core.dtype_results import (
    Cell,
    Check,
    Probe,
    ProbeEnded,
    Progress,
    build_cell,
    parse_text,
)
from mpsbar.dtypes.dtype_child import MARK
from mpsbar.system.child_process import ChildAnswer, ChildProcess, start_child
from mpsbar.system.ownership import NotTrusted

# Of tensors, above what torch itself takes.
CEILING = 256 << 20
# A cold torch from a slow disk on a busy machine; a first kernel that is compiled on one.
START_SECONDS = 120.0
CELL_SECONDS = 30.0
# Each costs another import of torch. A dtype, or an operation, that went down so often is known
# well enough.
_MOST_RESTARTS = 16
_MOST_ALIKE = 3
_MOST_CELLS = 2000
# Of which a process does not die by its own fault: the cell is tried once more.
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_SOURCES = importlib.resources.files("mpsbar.dtypes")

OnProgress = Callable[[Progress], None]


@dataclass(slots=True)
class _Session:
    """What is known of one Python until now; it outlives the throwaways that find it out."""

    stages: dict[str, ChildAnswer] = field(default_factory=dict)
    cells: list[str] = field(default_factory=list)  # all there are, in order
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    killed: set[str] = field(default_factory=set)
    fallen: Counter[str] = field(default_factory=Counter)  # by dtype and by operation
    memory: int | None = None
    tail: bytes = b""
    is_at_work: bool = False  # the present throwaway got as far as its cells
    is_over: bool = False  # and said itself that it is done
    false_starts: int = 0

    def hear(self, told: ChildAnswer) -> None:
        stage = told.pop("stage", None)
        cell = told.pop("cell", None)
        self.is_at_work = self.is_at_work or stage == "device"
        if stage == "cell" and cell in self.cells:
            self.answers.setdefault(cell, told)
            used = told.get("memory")
            if isinstance(used, int):
                self.memory = max(used, self.memory or 0)
        elif stage == "end":
            self.is_over = True
        elif isinstance(stage, str) and stage not in self.stages:
            self.stages[stage] = told
            cells = told.get("cells") if stage == "device" else None
            if isinstance(cells, list):
                self.cells = [str(cell)[:100] for cell in cells[:_MOST_CELLS]]

    @property
    def next_cell(self) -> str | None:
        return next((cell for cell in self.cells if cell not in self.answers), None)

    def blame(self, cell: str, state: str, text: str | None = None) -> None:
        """That cell; what is alike and went down too often is left out from now on."""
        self.answers[cell] = {"state": state, "text": text}
        operation, _, dtype = cell.partition("/")
        self.fallen.update({f"{operation}/", f"/{dtype}"} if dtype else {})
        tired = tuple(group for group, times in self.fallen.items() if times >= _MOST_ALIKE)
        for other in self.cells:
            if other.startswith(tired) or other.endswith(tired):
                self.answers.setdefault(other, {"state": "unknown"})


class Runner:
    """`run` it once, on any thread; `cancel` from any other."""

    def __init__(
        self,
        pythons: Sequence[str],
        device: str = "auto",
        *,
        ceiling: int = CEILING,
        start_seconds: float = START_SECONDS,
        cell_seconds: float = CELL_SECONDS,
    ) -> None:
        self._pythons, self._device, self._ceiling = pythons, device, ceiling
        self._start_seconds, self._cell_seconds = start_seconds, cell_seconds
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """`run` returns within a moment, with what was measured until now."""
        self._cancelled.set()

    def run(self, on_progress: OnProgress | None = None) -> Probe:
        """In the first of the Pythons that has torch. Never raises for what they do."""
        probe, unsafe = Probe("", "no_torch"), None
        for python in self._pythons:
            probe = self._run_in(python, on_progress or _ignore)
            if probe.ended == "unsafe":
                unsafe = unsafe or probe
            elif probe.ended not in ("no_torch", "no_python"):
                return probe
        return unsafe or probe

    def _run_in(self, python: str, on_progress: OnProgress) -> Probe:
        session, start, wall = _Session(), time.monotonic(), time.time()
        try:
            ended = self._finish(python, session, on_progress)
        except NotTrusted as problem:
            session.tail, ended = str(problem).encode(), "unsafe"
        except (FileNotFoundError, NotADirectoryError):
            ended = "no_python"
        except (OSError, ValueError) as error:
            session.tail, ended = str(error).encode(), "not_python"
        seconds = time.monotonic() - start
        return _build_probe(python, ended, session, self._ceiling, (wall, seconds))

    def _finish(self, python: str, session: _Session, on_progress: OnProgress) -> ProbeEnded:
        """One throwaway after the other, until every cell is known."""
        on_progress(Progress(0, None))
        for _ in range(_MOST_RESTARTS):
            code = self._run_once(python, session, on_progress)
            if self._cancelled.is_set():
                return "cancelled"
            cell = session.next_cell
            if session.is_over:
                return _parse_end(session)
            if not session.cells:
                return _parse_death(session, code)
            if cell is None:
                return "ok"
            if not session.is_at_work and session.false_starts:
                return "stopped"
            _judge_death(session, cell, code)
        return "stopped" if session.next_cell else "ok"

    def _run_once(self, python: str, session: _Session, on_progress: OnProgress) -> int | None:
        """Its exit code; None: it hung and was ended."""
        plan = {"device": self._device, "skip": list(session.answers), "ceiling": self._ceiling}
        session.is_at_work = session.is_over = False
        # The script as a file of its own, also where mpsbar itself lies in an archive.
        with (
            importlib.resources.as_file(_SOURCES / "dtype_child.py") as script,
            start_child(python, [str(script)], MARK, _build_input(plan)) as child,
        ):
            hung = self._listen(child, session, on_progress)
            session.tail = child.tail
            return None if hung else child.end()

    def _listen(self, child: ChildProcess, session: _Session, on_progress: OnProgress) -> bool:
        deadline = time.monotonic() + self._start_seconds
        is_first = True
        for answers in child.read_answers():
            for answer in answers:
                is_first = is_first and answer.get("stage") != "cell"
                session.hear(answer)
            if answers:
                seconds = self._start_seconds if is_first else self._cell_seconds
                deadline = time.monotonic() + seconds
                on_progress(Progress(len(session.answers), len(session.cells) or None))
            if self._cancelled.is_set() or session.is_over:
                return False
            if time.monotonic() > deadline:
                return True
        return False


def _build_input(plan: dict[str, Any]) -> bytes:
    """One line: the plan, and the text of the cases, for the throwaway's Python lacks mpsbar."""
    texts = {
        name: (_SOURCES / f"{name}.py").read_text("utf-8") for name in ("operations", "checks")
    }
    return json.dumps({**texts, **plan}).encode() + b"\n"


def _ignore(_: Progress) -> None:
    pass


def _judge_death(session: _Session, cell: str, code: int | None) -> None:
    """Of the throwaway that was to run `cell` next; no cell's fault if it never got there."""
    if not session.is_at_work:
        session.false_starts += 1
    elif code is None:
        session.blame(cell, "hung")
    elif -code in _FROM_OUTSIDE and cell not in session.killed:
        session.killed.add(cell)
    else:
        session.blame(cell, "crashed", _signal_name(code))


def _parse_end(session: _Session) -> ProbeEnded:
    """Of one that said all it had to say."""
    if session.stages.get("torch", {}).get("found") is False:
        return "no_torch"
    if "version" not in session.stages.get("import", {}):
        return "broken_torch"
    if not session.stages.get("device", {}).get("device"):
        return "no_device"
    return "ok" if session.next_cell is None else "stopped"  # by itself: too much memory


def _parse_death(session: _Session, code: int | None) -> ProbeEnded:
    """Of one that went down before the first cell."""
    if code is None:
        return "hung"
    if "python" not in session.stages:
        return "not_python"
    return "crashed" if code < 0 else "exited"


def _build_probe(
    python: str, ended: ProbeEnded, session: _Session, ceiling: int, times: tuple[float, float]
) -> Probe:
    told, loaded, device = (session.stages.get(n, {}) for n in ("python", "import", "device"))
    every = [build_cell(c, session.answers.get(c, {"state": "unknown"})) for c in session.cells]
    dtypes = device.get("dtypes")
    return Probe(
        python=python,
        ended=ended,
        prefix=parse_text(told.get("prefix"), 4096),
        version=parse_text(told.get("version")),
        torch=parse_text(loaded.get("version")),
        system=parse_text(told.get("system")),
        os=parse_text(told.get("os")),
        device=parse_text(device.get("device") or device.get("missing")),
        device_name=parse_text(device.get("name")),
        torch_file=parse_text(session.stages.get("torch", {}).get("file"), 4096),
        capability=tuple(map(str, dtypes)) if isinstance(dtypes, list) else None,
        fallback=parse_text(told.get("fallback")),
        error=_find_error(ended, session),
        cells=tuple(one for one in every if isinstance(one, Cell)) if device.get("device") else (),
        checks=tuple(o for o in every if isinstance(o, Check)) if device.get("device") else (),
        time=times[0],
        seconds=times[1],
        memory=session.memory,
        ceiling=ceiling,
    )


def _find_error(ended: ProbeEnded, session: _Session) -> str | None:
    if ended in ("ok", "cancelled", "no_torch", "no_python"):
        return None
    said = (session.stages.get(name, {}).get("text") for name in ("torch", "import", "device"))
    lines = session.tail.decode(errors="replace").strip().splitlines()
    return parse_text(next(filter(None, said), lines[-1] if lines else None))


def _signal_name(code: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return str(-code)
