"""The progress bars of tqdm and its subclasses."""

import sys
from functools import partial
from typing import Any, Optional
from weakref import ref as Ref  # noqa: N812 - it is a class

from .bars import (
    MAX_BARS,
    PREPARATIONS,
    Candidate,
    ProgressBar,
    find_started,
    read_fields,
    to_number,
    to_text,
)

_FIELDS = ("n", "total", "desc", "unit", "start_t", "initial", "last_print_t", "last_print_n")
# Of downloads: not what a person waits for.
_BYTES = frozenset(("B", "b", "iB", "bytes"))


def find_bars(now: float) -> "list[Candidate]":  # noqa: ARG001 - its times are as ours
    """Finds all bars of tqdm and its subclasses, which share one set; no disabled ones."""
    module = sys.modules.get("tqdm.std")
    owner = None if module is None else vars(module).get("tqdm")
    if owner is None:
        return []
    # A copy made by C code: another thread may make bars at the same time.
    references = list(vars(owner)["_instances"].data.copy())[:MAX_BARS]
    return [
        Candidate(started, ("tqdm", identity, started), partial(_read_bar, reference))
        for started, identity, reference in find_started(references, _FIELDS, "start_t", owner)
    ]


def _read_bar(reference: "Ref[Any]") -> Optional[ProgressBar]:
    fields = read_fields(reference, _FIELDS)
    done, unit, name = to_number(fields.get("n")), fields.get("unit"), to_text(fields.get("desc"))
    if done is None or unit in _BYTES or name.startswith(PREPARATIONS):
        return None
    bar = ProgressBar(name, done, to_number(fields.get("total")) or None, to_text(unit))
    bar.began_at = to_number(fields.get("initial")) or 0.0
    # `for x in tqdm(…)` stores its count when it prints, up to seconds after the last time.
    if done == fields.get("last_print_n"):
        bar.counted_at = to_number(fields.get("last_print_t"))
    return bar
