"""One line for tmux, SwiftBar, sketchybar or starship: a format with fields, filled in. Pure.

Where the fields are read from a file, nothing of the model and its words is imported.
"""

import string
from typing import TYPE_CHECKING

from mpsbar.agent.frameworks import join_labels
from mpsbar.core.errors import UserError
from mpsbar.core.naming import printable
from mpsbar.language import _

if TYPE_CHECKING:
    from mpsbar.core.snapshot import Snapshot

# Other characters mean something to one of the programs that show the line: `|` begins commands in
# SwiftBar, `#` formats in tmux, `%` and `$` those of shells. A process chooses its own name.
_SAFE = " ._-:+@"
_LONGEST_NAME = 40

FIELDS = {
    "held": _("what all connected processes hold"),
    "cached": _("what their allocators keep for reuse"),
    "gpu": _("how busy the GPU is"),
    "gpu_memory": _("GPU memory in use by all processes"),
    "budget": _("Metal's recommended working set"),
    "available": _("memory not in use"),
    "memory": _("memory of this computer"),
    "swap": _("swap in use"),
    "pressure": _("memory pressure: {levels}").format(levels="normal, warning, critical"),
    "health": "ok, warning, critical",
    "workers": _("number of connected processes"),
    "processes": _("number of processes with {frameworks}").format(frameworks=join_labels(_("or"))),
    "progress": _("progress of the longest-running job"),
    "left": _("time remaining of that job"),
    "top": _("name of the connected process that holds the most"),
    "top_held": _("memory held by that process"),
}


def parse_format(text: str) -> list[tuple[str, str | None]]:
    """Pairs of plain text and the field after it; UserError if a field is not known."""
    known = ", ".join(FIELDS)
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError as problem:
        text = _("the format is not valid: {problem}").format(problem=problem)
        raise UserError(text) from None
    for _plain, name, spec, conversion in parsed:
        if name is not None and (name not in FIELDS or spec or conversion):
            shown = printable(name, 40)
            text = _("{{{name}}} is not a field of --format; the fields are {fields}")
            raise UserError(text.format(name=shown, fields=known))
    return [(plain, name) for plain, name, _spec, _conversion in parsed]


def build_fields(snapshot: "Snapshot") -> dict[str, str]:
    """Every field as text; what is not known is a question mark."""
    from mpsbar.ui.text import progress, wording

    machine, gpu = snapshot.machine, snapshot.machine.gpu
    workers = [worker for worker in snapshot.workers if worker.state != "gone"]
    known = [worker for worker in workers if worker.held is not None]
    top = max(known or workers, key=lambda worker: worker.held or 0, default=None)
    job = snapshot.longest_job
    run = None if job is None else job.progress
    processes = snapshot.processes
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
        "processes": wording.UNKNOWN if processes is None else str(len(processes)),
        "progress": progress.say_fraction(None if run is None else run.fraction),
        "left": wording.UNKNOWN
        if run is None or run.seconds_left is None
        else wording.duration(run.seconds_left),
        "top": wording.UNKNOWN if top is None else make_safe(top.name),
        "top_held": wording.size(None if top is None else top.held),
    }


def render_line(parsed: list[tuple[str, str | None]], fields: dict[str, str]) -> str:
    """Returns always one line, whatever the format contains."""
    parts = (plain + (fields[name] if name else "") for plain, name in parsed)
    return " ".join("".join(parts).split("\n"))


def make_safe(name: str) -> str:
    from mpsbar.ui.text.cells import cut_middle

    line = cut_middle(name, _LONGEST_NAME)
    return "".join(c if c.isalnum() or c in _SAFE else "_" for c in line)
