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

What a host can see: if it takes the GIL from us in the midst of our work and reads the thresholds,
it reads ours. If it writes them back later, it gets its own.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import starmap
from operator import setitem
from typing import Any, Callable, Optional

# Recognised by its first number: from Python 3.14 on the third is not kept. Out of reach, and still
# small enough for a host that reads it in the wrong moment and sets ten times as much.
NEVER = 100_000_007
PAUSED = (NEVER, NEVER, NEVER)

Thresholds = tuple[int, int, int]


# Whether Python code of the agent runs: of the module, as there is one agent.
_agent_works = [False]


@contextmanager
def paused() -> Iterator[None]:
    """No collection inside, on any thread that has the GIL and keeps it until the end."""
    before = gc.get_threshold()
    try:
        gc.set_threshold(*PAUSED)
        yield
    finally:
        restore = starmap(gc.set_threshold, (before,))
        is_ours = before[0] >= NEVER or gc.get_threshold()[0] < NEVER
        # Not while the agent works: it has its own pause, and gives the host's thresholds back.
        if not is_ours and not _agent_works[0]:
            for _ in restore:
                break


class CollectorPause:
    """The thresholds of the host, while they are not in force."""

    current: "Optional[CollectorPause]" = None

    def __init__(self) -> None:
        self.host: Thresholds = gc.get_threshold()  # to be given back
        self._usual = self.host  # the last ones with which there were collections

    def begin(self) -> None:
        """Pause the collector. On the host's thread: the agent's may not allocate before."""
        CollectorPause.current = self  # before anything else: another thread may fork
        _agent_works[0] = True
        found = gc.get_threshold()
        gc.set_threshold(*PAUSED)
        self._note(found)

    def end(self) -> None:
        """Give the host its thresholds back, unless it has set others meanwhile."""
        _agent_works[0] = False
        if gc.get_threshold()[0] >= NEVER:
            gc.set_threshold(*self.host)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a C function returns that may let the host's threads run; only on our own thread.

        The function itself must not allocate objects that the collector tracks.
        """
        found = gc.get_threshold()
        if found[0] < NEVER:
            self._note(found)  # set by the host while we worked
        tuples = [(function, arguments, found)]
        steps = zip(
            starmap(setitem, ((_agent_works, 0, False),)),
            starmap(gc.set_threshold, (self.host,)),
            starmap(function, (arguments,)),
            map(len, iter(tuples.pop, None)),  # ends here, and its memory is that of the next
            iter(gc.get_threshold, None),
            starmap(gc.set_threshold, (PAUSED,)),
            starmap(setitem, ((_agent_works, 0, True),)),
        )
        try:
            for step in steps:
                break
        except BaseException:
            self.begin()
            raise
        self._note(step[4])
        return step[2]

    def _note(self, found: Thresholds) -> None:
        """Remember what the host has set; what it made of ours stands for what it usually has."""
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
