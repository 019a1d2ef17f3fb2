"""The progress bars of rich: the tasks of its Progress."""

import sys
import time
from collections.abc import Iterable
from functools import partial
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, Optional
from weakref import ref as Ref  # noqa: N812 - it is a class

from .bars import (
    MAX_BARS,
    PREPARATIONS,
    Candidate,
    ProgressBar,
    find_started,
    get_object,
    is_plain,
    read_fields,
    to_number,
    to_text,
)

_FIELDS = ("completed", "total", "description", "start_time", "stop_time", "visible")


def find_bars(now: float) -> "list[Candidate]":
    """Finds the tasks of rich's Progress on the default console, or with a thread that draws it."""
    module = sys.modules.get("rich.progress")
    if module is None:
        return []
    owner, task_class = vars(module)["Progress"], vars(module)["Task"]
    live_displays = chain(_attributes("rich", "_console._live_stack"), _drawing_threads())
    shown = map(attrgetter("_get_renderable.__self__"), live_displays)
    displays = list(dict.fromkeys(map(Ref, shown)))[:MAX_BARS]
    kinds = list(map(type, map(get_object, displays)))
    plain = [
        display for display, kind in zip(displays, kinds) if is_plain(kind, ("_tasks",), owner)
    ]
    tasks = map(dict.values, map(getattr, map(get_object, plain), repeat("_tasks")))
    references = list(map(Ref, chain.from_iterable(tasks)))[:MAX_BARS]
    clock = now - time.monotonic()
    return [
        Candidate(started + clock, ("rich", identity, started), partial(_read_task, reference))
        for started, identity, reference in find_started(
            references, _FIELDS, "start_time", task_class
        )
    ]


def _read_task(reference: "Ref[Any]") -> Optional[ProgressBar]:
    fields = read_fields(reference, _FIELDS)
    done, name = to_number(fields.get("completed")), to_text(fields.get("description"))
    is_shown = fields.get("visible") and fields.get("stop_time") is None
    if done is None or not is_shown or name.startswith(PREPARATIONS):
        return None
    return ProgressBar(name, done, to_number(fields.get("total")) or None, "")


def _attributes(module: str, path: str) -> "Iterable[Any]":
    """Returns what a global of a module leads to, or nothing."""
    try:
        return map(attrgetter(path), (sys.modules[module],)).__next__() or ()
    except (KeyError, AttributeError):
        return ()


def _drawing_threads() -> "Iterable[Any]":
    """Returns the displays of rich that have a thread of their own, on whichever console."""
    live = sys.modules.get("rich.live")
    threading = sys.modules.get("threading")
    if live is None or threading is None:
        return ()
    kind = vars(live).get("_RefreshThread")
    active = (vars(threading)["_active"],)
    threads = list(map(Ref, chain.from_iterable(map(dict.values, active))))
    kinds = list(map(type, map(get_object, threads)))
    drawing = [thread for thread, found in zip(threads, kinds) if found is kind]
    return map(attrgetter("live"), map(get_object, drawing))
