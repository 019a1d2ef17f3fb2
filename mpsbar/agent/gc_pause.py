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

A job on a thread of the host, most often its main thread, has thresholds of its own, JOB. The agent
leaves them in force while it waits and while it works; when the job ends, `_after_job` says what
comes back: PAUSED while the agent works, the host's while it waits. Both change in one step.

3.14.0 to 3.14.4 have another collector (3.14.5 went back to that of 3.13): a tuple counts also
where its memory comes from the list of free ones, and what is scheduled runs whatever the
thresholds are by then. So there the thresholds are read from the interpreter's memory, which
allocates nothing, and what our own thread has scheduled all the same, in a function of the
framework, is taken back in the step that pauses.

What the host sets is never overwritten: whether the thresholds are ours is asked in the same step
that replaces them, so a host that calls gc.set_threshold() between any two of our bytecodes keeps
what it set.

What a host can see: if it takes the GIL from us during our work and reads the thresholds,
it reads ours. If it writes them back later, it gets its own. If it sets its own in that moment,
they are in force from then on, also for the rest of that work: until our next wait.
"""

import ctypes
import gc
import operator
import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat, starmap
from operator import getitem, setitem
from typing import Any, Callable, Optional

Thresholds = tuple[int, int, int]
_call: Any = getattr(operator, "call", None)  # from 3.11 on

# Out of reach, and still small enough for a host that reads it in the wrong moment and sets ten
# times as much.
NEVER = 100_000_007
# The newest Python whose collector is known to be as described above.
_NEWEST = (3, 14)


def _set_for_a_moment(thresholds: Thresholds, *reads: "Iterator[Any]") -> "tuple[Any, ...]":
    """Returns what each of `reads` gives while these are in force; all in one step of C code."""
    host: deque[Thresholds] = deque(maxlen=1)
    steps = zip(
        map(host.append, iter(gc.get_threshold, None)),
        starmap(gc.set_threshold, (thresholds,)),
        *reads,
        starmap(gc.set_threshold, map(getitem, repeat(host), (-1,))),
    )
    return next(steps)[2:-1]


# The collector of 3.14.0 to 3.14.4 has no third one: gc.get_threshold() returns 0 for it.
_KEEPS_THIRD = _set_for_a_moment((NEVER,) * 3, iter(gc.get_threshold, None))[0] == (NEVER,) * 3
PAUSED = (NEVER, NEVER, NEVER if _KEEPS_THIRD else 0)
JOB = (NEVER + 2, NEVER + 2, NEVER + 2 if _KEEPS_THIRD else 0)

# In 64-bit words of _PyRuntime's table of offsets: the collector's place in an interpreter's state.
_GC_OFFSET = 11
# In bytes of the collector's state: its two thresholds.
_THRESHOLDS = (40, 64)


def _find_in_memory() -> "Optional[tuple[Any, int, int]]":
    """Returns this process's memory as numbers, and where in it the thresholds are; None if not
    found.
    """
    interpreter = ctypes.pythonapi["PyInterpreterState_Get"]
    interpreter.restype = ctypes.c_void_p
    try:
        offsets = (ctypes.c_uint64 * (_GC_OFFSET + 1)).in_dll(ctypes.pythonapi, "_PyRuntime")
    except ValueError:  # a Python that hides it
        return None
    if bytes(offsets)[:8] != b"xdebugpy" or not 0 < offsets[_GC_OFFSET] < 1 << 20:
        return None
    state = (interpreter() or 0) + offsets[_GC_OFFSET]
    numbers = (ctypes.c_int32 * (1 << 60)).from_address(0)
    first, second = ((state + offset) // 4 for offset in _THRESHOLDS)
    reads = (map(getitem, (numbers,), (place,)) for place in (first, second))
    values = _set_for_a_moment((NEVER + 4, NEVER + 6, 0), *reads)
    return (numbers, first, second) if values == (NEVER + 4, NEVER + 6) else None


_memory = None if _KEEPS_THIRD else _find_in_memory()
# Runs a collection that this thread has scheduled, if collections are on; and, on the main thread
# only, handlers of signals.
_run_scheduled = ctypes.pythonapi["PyErr_CheckSignals"]


def is_supported() -> bool:
    """Returns whether this Python's collector can be paused without being started by that."""
    is_known = sys.version_info[:2] <= _NEWEST
    return is_known and (_KEEPS_THIRD or _memory is not None)


# What comes into force when a job ends; other thresholds than JOB are the host's, and stay.
_after_job = {JOB: gc.get_threshold()}


@contextmanager
def paused() -> Iterator[None]:
    """Runs a block without any collection, whichever thread has the GIL."""
    for step in _beginning_job():
        break
    is_inner = step[2] == JOB
    try:
        yield
    finally:
        if not is_inner:
            end_job()


def end_job() -> None:
    """Ends the pause of a job, also of one that an exception has cut short."""
    _replace_if(_after_job)


class JobPause:
    """Pauses the collector for code of ours that main runs between two of the host's bytecodes.

    There an object of ours must not start a collection either: PySide6 crashes when its widgets end
    during its own calls. So all that `begin` needs is made beforehand.
    """

    def __init__(self) -> None:
        self._steps: Optional[Iterator[Any]] = _beginning_job()

    def begin(self) -> None:
        steps, self._steps = self._steps, None
        if steps is None:  # an exception of the host has cut the last `end` short
            steps = _beginning_job()
        for _ in steps:
            break

    def end(self) -> None:
        self._steps = _beginning_job()
        end_job()


def _beginning_job() -> "Iterator[tuple[Any, ...]]":
    """Returns an iterator whose first step begins a job; its third value is what was in force."""
    ended, read, thresholds = _reading()
    return zip(
        ended,
        read,
        thresholds,
        starmap(gc.set_threshold, (JOB,)),
        # A job inside another changes nothing.
        map(setitem, repeat(_after_job), repeat(JOB), map(_after_job.get, thresholds, thresholds)),
    )


def _reading() -> "tuple[Iterator[Any], Iterator[Any], Iterator[Thresholds]]":
    """Returns three iterators: the first two read the thresholds without allocating, one after the
    other; then the third returns them, as often as it is asked.
    """
    last: deque[Thresholds] = deque(maxlen=1)
    thresholds = map(getitem, repeat(last), repeat(-1))
    if _memory is not None:
        return repeat(None), map(last.append, _from_memory()), thresholds
    tuples = [(last, thresholds, gc)]  # of three: its memory is that of the thresholds
    ended = map(len, iter(tuples.pop, None))
    return ended, map(last.append, iter(gc.get_threshold, None)), thresholds


def _from_memory() -> "Iterator[Any]":
    """Returns an iterator that gives the thresholds once; zip has made its tuple already."""
    assert _memory is not None
    numbers, first, second = _memory
    return zip(map(getitem, (numbers,), (first,)), map(getitem, (numbers,), (second,)), (0,))


def _replace_if(replacements: "dict[Thresholds, Thresholds]") -> None:
    """Sets what `replacements` has for the thresholds in force; any others stay as they are."""
    for _ in _replacing(replacements):
        break


def _replacing(replacements: "dict[Thresholds, Thresholds]") -> Iterator[None]:
    """Returns an iterator whose first step is what `_replace_if` does, all of it in C code."""
    replaced: Iterator[Any]
    if _memory is not None:
        replaced = map(replacements.get, _from_memory(), _from_memory())
    else:
        now = iter(gc.get_threshold, None)
        replaced = map(replacements.get, now, now)
    return starmap(gc.set_threshold, replaced)


def _taking_back() -> "tuple[Iterator[Any], ...]":
    """Returns iterators of which one step each drops a collection that our own thread has
    scheduled.

    They run while collections are off, which nobody sees: the GIL is kept. Without a GIL others
    would see it.
    """
    if _memory is None or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return ()
    was_on: deque[bool] = deque(maxlen=1)
    switches = {True: gc.enable, False: gc.disable}
    return (
        map(was_on.append, map(_call, (gc.isenabled,))),
        map(_call, (gc.disable,)),
        map(_call, (_run_scheduled,)),
        map(_call, map(switches.get, map(getitem, repeat(was_on), (-1,)))),
    )


def call_directly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function as it is, where no threshold of the host has to be put back: on the host's
    own thread, or in a job that keeps the GIL. Elsewhere the agent uses `CollectorPause.call`.
    """
    return function(*arguments)


class CollectorPause:
    """Pauses the collector on the agent's thread, and keeps the host's thresholds meanwhile."""

    current: "Optional[CollectorPause]" = None

    def __init__(self) -> None:
        self.host: Thresholds = gc.get_threshold()  # to be given back
        self._usual = self.host  # the last ones with which there were collections

    def begin(self) -> None:
        """Pauses the collector, on the host's thread: the agent's may not allocate before."""
        CollectorPause.current = self  # before anything else: another thread may fork
        for step in zip(*_pausing()):
            break
        self._note(*step[2:4])

    def end(self) -> None:
        """Gives the host its thresholds back, unless it has set others meanwhile."""
        self._note(JOB, _after_job[JOB])
        _after_job[JOB] = self.host
        _replace_if({PAUSED: self.host, JOB: self.host})

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a C function with the host's thresholds in force; only on the agent's thread.

        The function may let the host's threads run. It must not allocate objects that the collector
        tracks.
        """
        thresholds = gc.get_threshold()
        if thresholds != PAUSED:  # set by the host while we worked, or a job on its thread runs
            self._note(thresholds, _after_job[JOB])
        replacements = {thresholds: self.host, PAUSED: self.host, JOB: JOB}
        after_job: Iterator[Any] = map(_after_job.get, repeat(JOB))
        in_wait: Iterator[Any] = map(replacements.get, after_job, after_job)
        steps = zip(
            _replacing(replacements),
            # Of what a job restores at its end, PAUSED is replaced by the host's thresholds; those
            # that a later job has found are the host's already.
            map(setitem, repeat(_after_job), repeat(JOB), in_wait),
            starmap(function, (arguments,)),
            *_pausing(),
            *_taking_back(),
        )
        try:
            for step in steps:
                break
        except BaseException:
            self.begin()
            for _ in zip(*_taking_back()):
                break
            raise
        self._note(*step[5:7])
        return step[2]

    def _note(self, thresholds: Thresholds, after_job: Thresholds) -> None:
        """Remembers the host's thresholds; values derived from ours count as its usual ones."""
        if thresholds == JOB:
            thresholds = after_job
            if thresholds[0] >= NEVER:
                return  # that job found our thresholds: no news
        if thresholds[0] >= NEVER:
            self.host = self._usual
            return
        first, second, third = thresholds
        _, usual_second, usual_third = self._usual
        self.host = (
            first,
            usual_second if second >= NEVER else second,
            usual_third if third >= NEVER else third,
        )
        if first:
            self._usual = self.host


def _pausing() -> "tuple[Iterator[Any], ...]":
    """Returns iterators of which one step each pauses the collector; the third and fourth return
    what was in force and, for a job, what would have come after it.
    """
    ended, read, thresholds = _reading()
    return (
        ended,
        read,
        thresholds,
        map(_after_job.get, (JOB,)),
        starmap(gc.set_threshold, map({JOB: JOB}.get, thresholds, repeat(PAUSED))),
        map(setitem, repeat(_after_job), repeat(JOB), (PAUSED,)),
    )


def _end_in_child() -> None:
    """Ends the pause in a forked child, which has no agent's thread, whatever that was doing."""
    if CollectorPause.current is not None:
        CollectorPause.current.end()


os.register_at_fork(after_in_child=_end_in_child)
