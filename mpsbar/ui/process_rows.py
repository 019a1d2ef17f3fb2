"""The rows of processes, connected or not, and of those that have ended. Pure."""

from collections import Counter

from mpsbar.core.actions import Command, Copy
from mpsbar.core.events import EndedProcess
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Family, Snapshot, Worker
from mpsbar.language import _
from mpsbar.ui.process_submenu import build_free, build_process_submenu, build_worker_submenu
from mpsbar.ui.rows import WIDTHS, Row, UiState
from mpsbar.ui.text import endings, outcomes, progress, wording
from mpsbar.ui.text.cells import cut_middle

# Rows of ended processes; the report has them all.
_MAX_ENDED = 3
_MAX_DETAILS = 12
_DETAIL_WIDTH = 110
# A row as long as an error's text would widen the whole menu; VoiceOver reads all of it.
_NOTES_WIDTH, _DEVICE_WIDTH = 110, 20


def build_processes(snapshot: Snapshot, ui_state: UiState) -> tuple[Row, ...]:
    rows = _build_rows(snapshot, ui_state)
    return (_headers(snapshot), *rows) if rows and ui_state.is_clickable else rows


def _headers(snapshot: Snapshot) -> Row:
    """Returns the row with the names of the columns."""
    cells = (_("Name"), _("Device"), _("Memory"), "")
    what = _("What a connected process holds; for others, their footprint.")
    whole = (
        _("The bar is the share of Metal's budget.")
        if snapshot.machine.gpu.memory_budget
        else _("The bar is the share of this computer's memory.")
    )
    text = ", ".join(cell for cell in cells if cell)
    return Row("headers", text, cells, tooltip=f"{what} {whole}", is_heading=True)


def _build_rows(snapshot: Snapshot, ui_state: UiState) -> tuple[Row, ...]:
    families = snapshot.families
    doubles = Counter(process.name for family in families for process in _shown(family))
    rows = [row for family in families for row in _family(family, doubles, snapshot, ui_state)]
    most = ui_state.most - ui_state.is_clickable  # the headers take a line
    if len(rows) <= most:  # a longer menu would scroll and hide its end
        left = min(_MAX_ENDED, most - len(rows))
        ended = (_ended(process, snapshot.time, ui_state) for process in snapshot.ended[:left])
        return (*rows, *ended)
    more = _("{n} More…").format(n=len(rows) - most + 1)
    actions = (Command.OPEN_REPORT,) if ui_state.is_clickable else ()
    tip = _("See them all in the report.")
    last = Row("more", more, actions=actions, tooltip=tip)
    return (*rows[: most - 1], last)


def _ended(process: EndedProcess, now: float, ui_state: UiState) -> Row:
    """Returns the row of an ended process; its submenu says what is known, and what to do next."""
    name, note = cut_middle(process.name, WIDTHS[0]), endings.describe_end(process, now)
    key = f"gone-{process.pid}-{int(process.started or process.ended)}"
    if not ui_state.is_clickable or process.verdict is None:
        return Row(key, f"{name}, {note}", (name, "", "", note))
    lines = endings.say_details(process, ui_state.read_native, ui_state.home, with_commands=False)
    children = [
        Row(f"why-{process.pid}-{number}", cut_middle(line, _DETAIL_WIDTH), tooltip=line)
        for number, line in enumerate(lines[:_MAX_DETAILS])
    ]
    copy = Copy("\n".join([f"{process.name} ({process.pid})", *lines]))
    children.append(Row(f"why-copy-{process.pid}", _("Copy Details"), actions=(copy,)))
    # A report of the system may add lines while the menu is open.
    return Row(
        key, f"{name}, {note}", (name, "", "", note), children=tuple(children),
        room=_MAX_DETAILS + 1,
    )  # fmt: skip


def _shown(family: Family) -> list[Worker | Process]:
    """The processes with a row of their own; unconnected children that are copies share one row."""
    return [family.root, *family.workers, *family.own_rows]


def _family(
    family: Family, doubles: Counter[str], snapshot: Snapshot, ui_state: UiState
) -> list[Row]:
    rows = []
    for process in _shown(family):
        indent = "" if process is family.root else "└ "
        double = f" {process.pid}" if doubles[process.name] > 1 else ""
        width = WIDTHS[0] - len(indent) - len(double)
        name = indent + cut_middle(process.name, width) + double
        if isinstance(process, Worker):
            rows.append(_worker(process, name, snapshot, ui_state))
        else:
            rows.append(_process(process, name, snapshot, ui_state))
    if family.copies:
        rows.append(_others(family))
    return rows


def _row(key: str, name: str, device: str, size: str, words: list[str], **more: object) -> Row:
    details = ", ".join(word for word in words if word)
    parts = [name.removeprefix("└ "), device, size, details]
    text = ", ".join(part for part in parts if part)
    device = cut_middle(device, _DEVICE_WIDTH)
    details = cut_middle(details, _NOTES_WIDTH)
    return Row(key, text, (name, device, size, details), end_note=_("ended"), **more)  # type: ignore[arg-type]


def _worker(worker: Worker, name: str, snapshot: Snapshot, ui_state: UiState) -> Row:
    words = [
        wording.state(worker), progress.say_progress(worker.progress), wording.cached(worker),
        wording.limit(worker), *outcomes.list_action_notes(worker, snapshot),
        outcomes.say_reset(worker.pid, snapshot),
    ]  # fmt: skip
    charged = None if worker.process is None else worker.process.footprint
    held = charged if worker.held is None else worker.held
    children = build_actions(worker, snapshot, ui_state)
    key = f"worker-{worker.pid}"
    tooltip = " ".join(worker.command)[:300]
    return _row(
        key, name, wording.device(worker), wording.size(held), words, children=children,
        tooltip=tooltip, share=_share(held, snapshot),
    )  # fmt: skip


def _share(held: int | None, snapshot: Snapshot) -> float | None:
    """The share of Metal's budget; without one, of this computer's memory."""
    machine = snapshot.machine
    whole = machine.gpu.memory_budget or machine.memory_total
    return None if held is None or not whole else min(1.0, held / whole)


def build_actions(
    process: Worker | Process, snapshot: Snapshot, ui_state: UiState
) -> tuple[Row, ...]:
    """All that can be done with one process now; in a printed menu only Free is shown."""
    if isinstance(process, Worker):
        if not ui_state.is_clickable:
            return build_free(process)
        return tuple(build_worker_submenu(process, snapshot, ui_state))
    return tuple(build_process_submenu(process, snapshot)) if ui_state.is_clickable else ()


def _process(process: Process, name: str, snapshot: Snapshot, ui_state: UiState) -> Row:
    pid = process.pid  # the same key as when connected, or an open menu would show "ended"
    state = _("starting") if process.is_starting else _("not connected")
    words = [state, *outcomes.list_action_notes(process, snapshot)]
    words.append(outcomes.say_reset(pid, snapshot))
    return _row(
        f"worker-{pid}", name, "+".join(process.frameworks), wording.size(process.footprint),
        words, children=build_actions(process, snapshot, ui_state),
        share=_share(process.footprint, snapshot),
        tooltip=wording.how_to_connect_in_menu(process) if ui_state.is_clickable
        else wording.how_to_connect_process(process),
    )  # fmt: skip


def _others(family: Family) -> Row:
    name = "└ " + wording.children(len(family.copies))
    size = wording.charged_together(family.copies)
    return _row(f"others-{family.root.pid}", name, "", size, [_("not connected")])
