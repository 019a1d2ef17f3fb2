"""An agent's answers as our model. Pure; the agent runs in another process: nothing is trusted."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mpsbar.agent.protocol import MAX_NUMBER
from mpsbar.agent.secrets import cut_options, mask, shorten_command
from mpsbar.core.actions import Freed, FreeState, Limited, LimitState, TensorGroup, Tensors
from mpsbar.core.counters import SENT, Backend, sum_known
from mpsbar.core.naming import name_process, printable
from mpsbar.core.progress import RunBar, RunProgress
from mpsbar.core.snapshot import LastFree, WaitingFree, Worker, WorkerState
from mpsbar.core.untrusted import is_number, is_whole
from mpsbar.language import _

_FREE_STATES = ("done", "busy", "failed")
_MAX_GROUPS = 50
_MAX_DEVICE = 20  # characters: it is a column of the tables
_MAX_UNIT = 12  # of a progress bar
_MAX_BAR_NAME = 80
_GROUP_FIELDS = ("device", "dtype", "shape")


def parse_worker(pid: int, hello: Any, stats: Any, state: WorkerState, age: float | None) -> Worker:
    return parse_stats(parse_hello(pid, hello), stats, state, age)


def parse_hello(pid: int, hello: Any) -> Worker:
    """Returns who the worker is; asked once for each connection."""
    hello = parse_object(hello)
    argv = hello.get("argv")
    command = tuple(map(parse_text, argv[:20])) if isinstance(argv, list) else ()
    methods = hello.get("methods")
    notebook = _optional_text(hello.get("notebook"))
    executable = _optional_text(hello.get("executable"))
    # Started under a title that begins with a path, Python takes that for its file.
    is_title = executable is not None and executable != cut_options(executable)
    last_words = hello.get("last_words")
    return Worker(
        pid=pid,
        name=name_process(command, notebook, None, executable) if command else f"process {pid}",
        state="busy",
        age=None,
        command=shorten_command(command),
        python=_optional_text(hello.get("python")),
        executable=None if is_title else executable,
        notebook=notebook,
        parent=parse_count(hello.get("parent")),
        agent=_optional_text(hello.get("agent")),
        writes_exit_record=last_words if isinstance(last_words, bool) else None,
        methods=frozenset(map(parse_text, methods[:20] if isinstance(methods, list) else ())),
        frameworks=_parse_frameworks(hello.get("frameworks")),
    )


def parse_stats(worker: Worker, stats: Any, state: WorkerState, age: float | None) -> Worker:
    """Returns the same worker with what it holds; asked at every poll."""
    stats = parse_object(stats)
    return replace(
        worker,
        state=state,
        age=age,
        frameworks=_parse_frameworks(stats.get("frameworks")) or worker.frameworks,
        backends=tuple(
            _parse_backend(name, value)
            for name, value in list(parse_object(stats.get("backends")).items())[:10]
        ),
        last_free=_parse_last_free(stats.get("last_free")),
        progress=_parse_progress(stats.get("progress")),
        pending_free=_parse_pending_free(stats.get("kept_free")),
        fallbacks=parse_count(stats.get("fallbacks")),
    )


def _parse_last_free(value: Any) -> LastFree | None:
    fields = parse_object(value)
    number, when = parse_count(fields.get("number")), parse_time(fields.get("time"))
    state = fields.get("state")
    if number is None or when is None or state not in _FREE_STATES:
        return None
    freed, seconds = parse_count(fields.get("freed")), parse_seconds(fields.get("seconds"))
    reason = parse_text(fields["reason"]) if fields.get("reason") else None
    return LastFree(
        number, when, state, freed, seconds, fields.get("when_possible") is True, reason
    )


def _parse_pending_free(value: Any) -> WaitingFree | None:
    fields = parse_object(value)
    left = parse_seconds(fields.get("left"))
    return None if left is None else WaitingFree(left, *_parse_reason(fields))


def _parse_progress(value: Any) -> RunProgress | None:
    fields = parse_object(value)
    bar, inner = parse_bar(fields), parse_bar(fields.get("inner"))
    steps = parse_count(fields.get("steps"))
    if bar is None and steps is None:
        return None
    return RunProgress(bar, inner, steps, parse_amount(fields.get("steps_per_second")))


def parse_bar(value: Any) -> RunBar | None:
    fields = parse_object(value)
    done = parse_amount(fields.get("done"))
    if done is None:
        return None
    return RunBar(
        mask(parse_text(fields.get("name") or ""))[:_MAX_BAR_NAME],
        done,
        parse_amount(fields.get("total")),
        parse_text(fields.get("unit") or "")[:_MAX_UNIT],
        parse_amount(fields.get("rate")),
        parse_seconds(fields.get("seconds_left")),
    )


def parse_amount(value: Any) -> float | None:
    """Returns a number that is not negative, not a boolean, and not absurd, else None."""
    return value if is_number(value, MAX_NUMBER + 1) else None


def _parse_frameworks(value: Any) -> dict[str, str]:
    return {parse_text(k): parse_text(v) for k, v in list(parse_object(value).items())[:10]}


def parse_freed(worker: Worker, answer: Any) -> Freed:
    """Returns the outcome of a free, from the agent's answer and the worker as it is afterwards."""
    if not isinstance(answer, dict):
        return Freed(worker.pid, worker.name, "failed", error=_("the agent did not answer"))
    code, where = _parse_reason(answer)
    reports = [answer, *parse_object(answer.get("backends")).values()]
    errors = [r["error"] for r in reports if isinstance(r, dict) and r.get("error")]
    names = answer.get("not_known")
    busy = answer.get("state") == "busy"
    waits = parse_seconds(parse_object(answer.get("kept")).get("left")) if busy else None
    return Freed(
        pid=worker.pid,
        name=worker.name,
        state="waiting" if waits else "busy" if busy else "failed" if errors else "done",
        freed=parse_count(answer.get("freed")),
        seconds=parse_seconds(answer.get("seconds")),
        pinned=None if busy or worker.cached_is_bound else worker.cached,
        collected=collected if isinstance(collected := answer.get("collected"), bool) else None,
        gui_toolkit=parse_text(toolkit) if (toolkit := answer.get("gui_toolkit")) else None,
        main_was_waiting=answer.get("main_was_waiting") is True,
        not_known=tuple(map(parse_text, names[:10])) if isinstance(names, list) else (),
        reason=code,
        where=where,
        error=mask(parse_text(errors[0])) if errors else None,
        number=parse_count(answer.get("number")),
        age=parse_seconds(answer.get("age")),
        waits=waits,
        trimmed=answer.get("trimmed") is True,
    )


def parse_limited(worker: Worker, asked: int | None, answer: Any) -> Limited:
    """Returns the answer to a limit of `asked` bytes."""
    if not isinstance(answer, dict):
        error = _("the agent did not answer")
        if worker.methods and "limit" not in worker.methods:
            error = _("its agent is too old to set limits: restart the process")
        return Limited(worker.pid, worker.name, "failed", asked, error=error)
    code, where = _parse_reason(answer)
    state: LimitState = "failed"
    if answer.get("state") == "refused":
        state = "above" if code == "above" else "impossible"
    elif answer.get("state") == "done":
        state = "done"
    elif answer.get("state") == "busy":
        state = "busy"
    reports = [
        parse_object(report) for report in list(parse_object(answer.get("backends")).values())[:10]
    ]
    return Limited(
        pid=worker.pid,
        name=worker.name,
        state=state,
        asked=asked,
        limit=_most(reports, "limit"),
        least=parse_count(parse_object(answer.get("reason")).get("least")),
        held=_sum(reports, "held"),
        freed=_sum(reports, "freed"),
        reason=code,
        where=where,
        error=mask(parse_text(answer["error"])) if answer.get("error") else None,
        seconds=parse_seconds(answer.get("seconds")),
    )


def _most(reports: list[dict[str, Any]], key: str) -> int | None:
    return max((n for r in reports if (n := parse_count(r.get(key))) is not None), default=None)


def _sum(reports: list[dict[str, Any]], key: str) -> int | None:
    return sum_known(parse_count(report.get(key)) for report in reports)


def parse_tensors(pid: int, answer: Any) -> Tensors:
    if not isinstance(answer, dict):
        return Tensors(pid, "failed", error=_("the agent did not answer"))
    if answer.get("state") != "done":
        code, where = _parse_reason(answer)
        error = mask(parse_text(answer["error"])) if answer.get("error") else None
        state: FreeState = "busy" if answer.get("state") == "busy" else "failed"
        return Tensors(pid, state, reason=code, where=where, error=error)
    groups = answer.get("groups")
    others = answer.get("others")
    unseen = list(parse_object(answer.get("not_visible")).items())[:10]
    return Tensors(
        pid,
        "done",
        groups=tuple(_parse_groups(groups if isinstance(groups, list) else [])),
        others=parse_count(others.get("bytes")) if isinstance(others, dict) else None,
        not_visible={
            parse_text(name): size
            for name, count in unseen
            if (size := parse_count(count)) is not None
        },
        cut_short=answer.get("cut_short") is True,
    )


def _parse_groups(groups: list[Any]) -> Iterator[TensorGroup]:
    for group in groups[:_MAX_GROUPS]:
        if not isinstance(group, dict):
            continue
        count, size = parse_count(group.get("count")), parse_count(group.get("bytes"))
        if count is not None and size is not None:
            device, dtype, shape = (parse_text(group.get(k, "?")) for k in _GROUP_FIELDS)
            yield TensorGroup(device, dtype, shape, count, size)


def _parse_reason(answer: dict[str, Any]) -> tuple[str | None, str | None]:
    """Returns why the agent did nothing, as a code, and the place in the program."""
    reason = parse_object(answer.get("reason"))
    code = parse_text(reason["code"]) if "code" in reason else None
    return code, mask(parse_text(reason["where"])) if reason.get("where") else None


def parse_count(value: Any) -> int | None:
    """Returns a number of bytes, or None: never a negative one, a float, or more than any machine
    has.

    At most 2**53: sums of many still fit a column of SQLite.
    """
    return value if is_whole(value, MAX_NUMBER + 1) else None


def parse_seconds(value: Any) -> float | None:
    return float(value) if is_number(value, 1e9) else None


def parse_time(value: Any) -> float | None:
    """Returns seconds since the epoch, until the year 5138."""
    return float(value) if is_number(value, 1e11) else None


def parse_text(value: Any) -> str:
    return printable(str(value)).strip()


def _parse_backend(name: Any, value: Any) -> Backend:
    fields = parse_object(value)
    return Backend(
        name=parse_text(name)[:_MAX_DEVICE] or "?",
        framework=parse_text(fields.get("framework", "?")),
        state=parse_text(fields.get("state", "?")),
        activity=parse_count(fields.get("activity")),
        **{counter.name: parse_count(fields.get(counter.name)) for counter in SENT},
    )


def _optional_text(value: Any) -> str | None:
    return parse_text(value) if isinstance(value, str) else None


def parse_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
