"""Keeps Python's cyclic garbage collector off the agent's thread.

A collection runs on whichever thread allocates, and the finalizers of the host's objects run with
it: on our thread, where a Tk interpreter aborts and a Qt window crashes. So while Python code of
the agent runs, the collector's thresholds are too high to be reached; while the agent waits, they
are the host's.

Why the thresholds and not gc.disable(): the host may call gc.disable() or gc.enable() at any moment
our thread loses the GIL, and a flag cannot show that it did; it stays the host's alone. And Python
3.12 runs a collection that was scheduled before gc.disable() all the same, on any thread, but looks
at the thresholds first.

From the host's thresholds to ours and back is one step of a `for` loop over an iterator that is
made of C functions, with the wait in its middle. So no Python code runs in between, neither ours
nor that of a host's tracer, and no other thread while the thresholds change; Python 3.12, which
runs what is scheduled between two bytecodes, finds none there. And nothing is allocated: all
iterators are made beforehand, and the tuple that gc.get_threshold() needs comes from the list of
free tuples, which has just been given one.

What the host sets is never overwritten: whether the thresholds are ours is asked in the same step
that replaces them, so a host that calls gc.set_threshold() between any two of our bytecodes keeps
what it set.

What a host can see: if it takes the GIL from us in the midst of our work and reads the thresholds,
it reads ours. If it writes them back later, it gets its own. If it sets its own in that moment,
they are in force from then on, also for the rest of that work: until our next wait.
"""

import gc
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import starmap
from typing import Any, Callable, Optional

Thresholds = tuple[int, int, int]

# Out of reach, and still small enough for a host that reads it in the wrong moment and sets ten
# times as much.
NEVER = 100_000_007
PAUSED = (NEVER, NEVER, NEVER)
# Those of `paused`, on a thread of the host: whoever finds them knows they are not the agent's.
_PAUSED_BY_JOB = (NEVER + 2, NEVER + 2, NEVER + 2)


def _as_read(thresholds: Thresholds) -> "tuple[Thresholds, Thresholds]":
    """What gc.get_threshold() may return for these: Python 3.14 does not keep the third."""
    return thresholds, (thresholds[0], thresholds[1], 0)


_OURS = _as_read(PAUSED) + _as_read(_PAUSED_BY_JOB)

# What the last jobs on a thread of the host found before they paused the collector, one maybe
# inside the other.
_found_by_jobs: "deque[Thresholds]" = deque([gc.get_threshold()], maxlen=8)


@contextmanager
def paused() -> Iterator[None]:
    """No collection inside, on any thread that has the GIL and keeps it until the end."""
    before = _replace(_PAUSED_BY_JOB, _found_by_jobs)
    try:
        yield
    finally:
        # The agent may have run meanwhile: then its own thresholds are in force, or the host's.
        _replace_if(dict.fromkeys(_as_read(_PAUSED_BY_JOB), before))


class JobPause:
    """The same for code of ours that the host's main thread runs between two of its bytecodes.

    There an object of ours must not start a collection either: PySide6 crashes when its widgets end
    in the midst of its own calls. So all that `begin` needs is made beforehand.
    """

    def __init__(self) -> None:
        self._steps = self._prepare()

    def begin(self) -> None:
        for _ in self._steps:
            break

    def end(self) -> None:
        replacements = dict.fromkeys(_as_read(_PAUSED_BY_JOB), _host_before_jobs())
        self._steps = self._prepare()
        _replace_if(replacements)

    def _prepare(self) -> "Iterator[Any]":
        tuples = [(self, len, gc)]  # of three: its memory is that of the thresholds that are read
        return zip(
            map(len, iter(tuples.pop, None)),
            map(_found_by_jobs.append, iter(gc.get_threshold, None)),
            starmap(gc.set_threshold, (_PAUSED_BY_JOB,)),
        )


def restore_after_job() -> None:
    """For a thread of the host on which a job was cut short; the agent's thread heals it itself."""
    _replace_if(dict.fromkeys(_as_read(_PAUSED_BY_JOB), _host_before_jobs()))


def _host_before_jobs() -> Thresholds:
    """What the outermost job found; PAUSED if that was the agent's."""
    found = (each for each in reversed(_found_by_jobs) if each[0] != _PAUSED_BY_JOB[0])
    return next(found, PAUSED)


def _replace(thresholds: Thresholds, found: "deque[Thresholds]") -> Thresholds:
    """Set `thresholds`; returns those that were in force, which are appended to `found` too."""
    steps = zip(
        map(found.append, iter(gc.get_threshold, None)), starmap(gc.set_threshold, (thresholds,))
    )
    for _ in steps:
        break
    return found[-1]


def _replace_if(replacements: "dict[Thresholds, Thresholds]") -> None:
    """Set what `replacements` has for the thresholds in force; others stay as they are."""
    for _ in _replacing(replacements):
        break


def _replacing(replacements: "dict[Thresholds, Thresholds]") -> Iterator[None]:
    """An iterator whose first step is what `_replace_if` does, all of it in C code."""
    now = iter(gc.get_threshold, None)
    return starmap(gc.set_threshold, map(replacements.get, now, now))


class CollectorPause:
    """The thresholds of the host, while they are not in force."""

    current: "Optional[CollectorPause]" = None

    def __init__(self) -> None:
        self.host: Thresholds = gc.get_threshold()  # to be given back
        self._usual = self.host  # the last ones with which there were collections
        self._found: deque[Thresholds] = deque(maxlen=1)

    def begin(self) -> None:
        """Pause the collector. On the host's thread: the agent's may not allocate before."""
        CollectorPause.current = self  # before anything else: another thread may fork
        self._note(_replace(PAUSED, self._found))

    def end(self) -> None:
        """Give the host its thresholds back, unless it has set others meanwhile."""
        _replace_if(dict.fromkeys(_OURS, self.host))

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a C function returns that may let the host's threads run; only on our own thread.

        The function itself must not allocate objects that the collector tracks.
        """
        found = gc.get_threshold()
        if found[0] != NEVER:
            self._note(found)  # set by the host while we worked, or a job on its thread runs
        tuples = [(function, arguments, found)]
        replacements = dict.fromkeys((*_OURS, found), self.host)
        del found
        steps = zip(
            _replacing(replacements),
            starmap(function, (arguments,)),
            map(len, iter(tuples.pop, None)),  # ends here, and its memory is that of the next
            iter(gc.get_threshold, None),
            starmap(gc.set_threshold, (PAUSED,)),
        )
        try:
            for step in steps:
                break
        except BaseException:
            self.begin()
            raise
        self._note(step[3])
        return step[1]

    def _note(self, found: Thresholds) -> None:
        """Remember what the host has set; what it made of ours stands for what it usually has."""
        if found[0] == _PAUSED_BY_JOB[0]:
            found = _host_before_jobs()
            if found[0] >= NEVER:
                return  # that job found ours: nothing is new
        if found[0] >= NEVER:
            self.host = self._usual
            return
        first, second, third = found
        _, usual_second, usual_third = self._usual
        self.host = (
            first,
            usual_second if second >= NEVER else second,
            usual_third if third >= NEVER else third,
        )
        if first:
            self._usual = self.host


def _end_in_child() -> None:
    """A forked child has no agent's thread, whatever that was doing at the fork."""
    if CollectorPause.current is not None:
        CollectorPause.current.end()


os.register_at_fork(after_in_child=_end_in_child)
