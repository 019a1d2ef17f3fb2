"""The submenu of a process: what can be done with it, and its largest tensors. Pure."""

from collections.abc import Iterator

from mpsbar.agent.conventions import WHEN_POSSIBLE_SECONDS
from mpsbar.core.actions import (
    AskLimit,
    AutoFreeRule,
    CancelFree,
    Connect,
    Copy,
    FindTensors,
    Free,
    FreeWhenPossible,
    Limit,
    SetAutoFree,
    Stop,
    TensorGroup,
    Tensors,
    WatchEnd,
)
from mpsbar.core.health import find_budget
from mpsbar.core.limits import PERCENTS, parse_size
from mpsbar.core.machine import Process
from mpsbar.core.settings import KEEP_CACHE_BELOW
from mpsbar.core.snapshot import AutoFreeStatus, Snapshot, Worker
from mpsbar.language import _
from mpsbar.ui.rows import Row, UiState
from mpsbar.ui.text import outcomes, wording
from mpsbar.ui.text.cells import cut_middle

_MAX_GROUPS = 8
# The groups, then "others", then "not visible from Python" or "stopped early".
TENSOR_ROWS = _MAX_GROUPS + 2
_WIDTH = 110


def build_worker_submenu(worker: Worker, snapshot: Snapshot, ui_state: UiState) -> Iterator[Row]:
    pid, process = worker.pid, worker.process
    yield from build_free(worker, Free(pid) in snapshot.pending)
    yield from _free_when_possible(worker, snapshot)
    yield from _limit(worker, snapshot)
    if "tensors" in worker.methods:
        yield Row(
            f"tensors-{pid}", _("Largest Tensors"), children=build_tensors(snapshot, pid),
            opens=FindTensors(pid, worker.started), room=TENSOR_ROWS,
        )  # fmt: skip
    yield from _auto_free(worker, snapshot, ui_state)
    started = None if process is None else process.started
    # The start may not have been known yet when the notice was asked for.
    known = ui_state.watched & {(pid, started), (pid, None)}
    asked_for = next(iter(known), (pid, started))
    watch = WatchEnd(*asked_for, worker.name, on=not known)
    text = _("Notify When Finished")
    yield Row(f"watch-{pid}", text, actions=(watch,), is_checked=bool(known))
    yield _copy_pid(pid)
    if process is not None:
        yield _stop(process, worker.name, snapshot)


def build_process_submenu(process: Process, snapshot: Snapshot) -> Iterator[Row]:
    """The submenu of a process that is not connected."""
    yield from _connect(process, snapshot)
    yield _copy_pid(process.pid)
    yield _stop(process, process.name, snapshot)


def can_free(worker: Worker) -> bool:
    """Returns whether its agent can free; assumed while its methods are not known."""
    return not worker.methods or "free" in worker.methods


def build_free(worker: Worker, is_pending: bool = False) -> tuple[Row, ...]:
    if not can_free(worker):
        return ()
    tip = _("Pauses the process briefly; its next steps may be slower.")
    text = _("Freeing…") if is_pending else _("Free Cache")
    actions = () if is_pending else (Free(worker.pid, started=worker.started),)
    return (Row(f"free-{worker.pid}", text, actions=actions, tooltip=tip),)


def _free_when_possible(worker: Worker, snapshot: Snapshot) -> Iterator[Row]:
    """Offers it where a Free was refused; while one waits, the same row cancels it."""
    pid, kept = worker.pid, worker.pending_free
    key = f"when-possible-{pid}"
    if kept is not None:
        text = _("Cancel Free When Possible")
        tip = outcomes.say_waiting_free(kept)
        yield Row(key, text, actions=(CancelFree(pid, worker.started),), tooltip=tip)
        return
    last, shown = worker.last_free, snapshot.freed.get(pid)
    was_busy = any(free is not None and free.may_come_later for free in (last, shown))
    if was_busy and can_free(worker):
        is_pending = FreeWhenPossible(pid) in snapshot.pending
        actions = () if is_pending else (FreeWhenPossible(pid, worker.started),)
        tip = _(
            "Frees at the first safe moment within {n} minutes; the process keeps running "
            "meanwhile."
        ).format(n=f"{WHEN_POSSIBLE_SECONDS / 60:g}")
        yield Row(key, _("Free When Possible"), actions=actions, tooltip=tip)


def _limit(worker: Worker, snapshot: Snapshot) -> Iterator[Row]:
    """Returns nothing unless its agent and an allocator in use can keep a limit."""
    pid, now = worker.pid, worker.limit
    meanings = wording.explain_limit(worker, briefly=True)
    if "limit" not in worker.methods or not meanings:
        return
    off = Row(
        f"limit-{pid}-off",
        _("Off"),
        actions=(Limit(pid, None, worker.started),),
        is_checked=now is None,
    )
    budget, rows = find_budget(snapshot, (worker,)), [off]
    sizes = {} if budget is None else {percent: percent * budget // 100 for percent in PERCENTS}
    for percent, size in sizes.items():
        text = _("{percent} of Budget ({size})").format(
            percent=f"{percent}%", size=wording.size(size)
        )
        rows.append(
            Row(f"limit-{pid}-{percent}", text, actions=(AskLimit(pid, size, worker.started),),
                is_checked=now == size)
        )  # fmt: skip
    is_custom = now is not None and now not in sizes.values()
    text = _("Custom ({size})…").format(size=wording.size(now)) if is_custom else _("Custom…")
    rows.append(
        Row(
            f"limit-{pid}-custom",
            text,
            actions=(AskLimit(pid, None, worker.started),),
            is_checked=is_custom,
        )
    )
    tip = " ".join(meanings)
    yield Row(f"limit-{pid}", _("Limit Memory"), children=tuple(rows), tooltip=tip)


def _auto_free(worker: Worker, snapshot: Snapshot, ui_state: UiState) -> Iterator[Row]:
    """Lists the choices for this process alone, until it ends; Settings has those for all."""
    if not can_free(worker) or worker.cached is None:
        return
    pid, settings = worker.pid, ui_state.settings
    started = None if worker.process is None else worker.process.started
    rule = snapshot.auto_free.get(pid, AutoFreeStatus()).rule

    def keep(key: str, text: str, size: int | None) -> Row:
        action = SetAutoFree(pid, started, AutoFreeRule(size, rule.free_when_idle))
        return Row(
            f"keep-{pid}-{key}", text, actions=(action,), is_checked=rule.keep_cache_below == size
        )

    usual = settings.keep_cache_bytes
    usual_text = _("Use Default ({size})").format(size=wording.size(usual) if usual else _("Off"))
    sizes = [(text, parse_size(text)) for text in KEEP_CACHE_BELOW]
    children = (
        keep("usual", usual_text, None),
        keep("off", _("Off"), 0),
        *(keep(text, wording.size(size), size) for text, size in sizes),
    )
    tip = _(
        "Frees its cache when it exceeds this size, at most once a minute and never while busy."
    )
    yield Row(f"keep-{pid}", _("Keep Cache Below"), children=children, tooltip=tip)
    is_on = settings.free_when_idle if rule.free_when_idle is None else rule.free_when_idle
    action = SetAutoFree(pid, started, AutoFreeRule(rule.keep_cache_below, not is_on))
    tip = _("Frees its cache after a minute of inactivity, if it is large or memory is low.")
    yield Row(f"idle-{pid}", _("Free When Idle"), actions=(action,), is_checked=is_on, tooltip=tip)


def build_tensors(snapshot: Snapshot, pid: int) -> tuple[Row, ...]:
    """Lists the largest groups of tensors; while there are none, one row says why."""
    tensors = snapshot.tensors.get(pid)
    if tensors is None:
        is_pending = FindTensors(pid) in snapshot.pending
        words = [_("Counting…") if is_pending else _("Not counted yet")]
    elif tensors.state != "done":
        words = [outcomes.say_tensors_refused(tensors)]
    else:
        words = _say_tensors(tensors)
    lines = [cut_middle(text, _WIDTH) for text in words]
    return tuple(Row(f"tensor-{pid}-{number}", text) for number, text in enumerate(lines))


def _say_tensors(tensors: Tensors) -> list[str]:
    lines = [_say_group(group) for group in tensors.groups[:_MAX_GROUPS]]
    rest = sum(group.size for group in tensors.groups[_MAX_GROUPS:]) + (tensors.others or 0)
    if rest:
        lines.append(_("{size}  other tensors").format(size=wording.size(rest)))
    unseen = sum(tensors.not_visible.values())
    if tensors.cut_short:  # what was not looked at may well be visible
        lines.append(_("There are more: counting stopped early"))
    elif unseen:
        lines.append(_("{size}  not visible from Python").format(size=wording.size(unseen)))
    return lines or [_("No live tensors")]


def _say_group(group: TensorGroup) -> str:
    many = f"{group.count} × " if group.count > 1 else ""
    shape = group.shape.replace("x", "×") if group.shape != "scalar" else _("scalar")
    return f"{wording.size(group.size)}  {many}{group.dtype} {shape}  {group.device}"


def _connect(process: Process, snapshot: Snapshot) -> Iterator[Row]:
    """Returns nothing where its Python is not known: there is no environment to enable."""
    if process.python is None:
        return
    action = Connect(process.python)
    is_pending = action in snapshot.pending
    text = _("Connecting…") if is_pending else _("Connect This Environment…")
    key = f"connect-{process.pid}"
    yield Row(key, text, actions=() if is_pending else (action,), tooltip=process.python)


def _copy_pid(pid: int) -> Row:
    return Row(f"copy-{pid}", _("Copy PID"), actions=(Copy(str(pid)),), tooltip=str(pid))


def _stop(process: Process, name: str, snapshot: Snapshot) -> Row:
    """The first Stop sends SIGINT, a second one SIGTERM."""
    before = snapshot.stopped.get(process.pid)
    is_same = before is not None and before.started in (None, process.started)
    firmly = before is not None and before.state == "asked" and is_same
    action = Stop(process.pid, process.started, name, firmly)
    return Row(f"stop-{process.pid}", _("Stop…"), actions=(action,))
