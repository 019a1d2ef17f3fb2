"""One line for tmux, SwiftBar, sketchybar or starship: a format with fields, filled in. Pure."""

import string

from mpsbar.agent.frameworks import join_labels
from mpsbar.core.errors import UserError
from mpsbar.core.naming import printable
from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.ui.text import progress, wording

# Other characters mean something to one of the programs that show the line: `|` begins commands in
# SwiftBar, `#` formats in tmux, `%` and `$` those of shells. A process chooses its own name.
_SAFE = " ._-:+@"
_LONGEST_NAME = 40

FIELDS = {
    "held": "what all workers hold",
    "cached": "what their allocators keep for reuse",
    "gpu": "how busy the GPU is",
    "gpu_memory": "GPU memory in use by all processes",
    "budget": "Metal's recommended working set",
    "available": "memory not in use",
    "memory": "memory of this computer",
    "swap": "swap in use",
    "pressure": "memory pressure: normal, warning, critical",
    "health": "ok, warning, critical",
    "workers": "number of connected processes",
    "processes": f"number of processes with {join_labels('or')}",
    "progress": "how far the longest-running job is",
    "left": "how long it still takes",
    "top": "name of the worker that holds most",
    "top_held": "what it holds",
}


def parse_format(text: str) -> list[tuple[str, str | None]]:
    """Pairs of plain text and the field after it; UserError if a field is not known."""
    known = ", ".join(FIELDS)
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError as problem:
        raise UserError(f"the format is not valid: {problem}") from None
    for _, name, spec, conversion in parsed:
        if name is not None and (name not in FIELDS or spec or conversion):
            shown = printable(name, 40)
            raise UserError(f"{{{shown}}} is not a field of --format; there are {known}")
    return [(plain, name) for plain, name, _, _ in parsed]


def build_fields(snapshot: Snapshot) -> dict[str, str]:
    """Every field as text; what is not known is a question mark."""
    machine, gpu = snapshot.machine, snapshot.machine.gpu
    workers = [worker for worker in snapshot.workers if worker.state != "gone"]
    top = max(workers, key=_held, default=None)
    job = snapshot.longest_job
    run = None if job is None else job.progress
    found = snapshot.processes
    return {
        "held": wording.size(snapshot.held),
        "cached": wording.size(snapshot.cached),
        "gpu": wording.percent(gpu.utilization),
        "gpu_memory": wording.size(gpu.memory_in_use),
        "budget": wording.size(gpu.memory_budget),
        "available": wording.size(machine.memory_available),
        "memory": wording.size(machine.memory_total),
        "swap": wording.size(machine.swap_used),
        "pressure": machine.pressure or wording.UNKNOWN,
        "health": snapshot.health.level,
        "workers": str(len(workers)),
        "processes": wording.UNKNOWN if found is None else str(len(found)),
        "progress": progress.say_fraction(None if run is None else run.fraction),
        "left": wording.UNKNOWN
        if run is None or run.seconds_left is None
        else wording.duration(run.seconds_left),
        "top": wording.UNKNOWN if top is None else make_safe(top.name),
        "top_held": wording.size(None if top is None else top.held),
    }


def render_line(parsed: list[tuple[str, str | None]], fields: dict[str, str]) -> str:
    """Always one line, whatever the format has in it."""
    parts = (plain + (fields.get(name, wording.UNKNOWN) if name else "") for plain, name in parsed)
    return " ".join("".join(parts).split("\n"))


def make_safe(name: str) -> str:
    line = wording.shorten(printable(name), _LONGEST_NAME)
    return "".join(c if c.isalnum() or c in _SAFE else "_" for c in line)


def _held(worker: Worker) -> int:
    return -1 if worker.held is None else worker.held
