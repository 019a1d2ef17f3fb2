"""One module for each allocator a worker may hold memory in, all of the same small shape.

    NAME, FRAMEWORK   what it is called on the wire, and whose allocator it is
    ANYWHERE          whether the agent's thread may release the cache while the host computes
    state(gpu_client) IN_USE, NOT_INITIALISED, NOT_KNOWN, or None where the process cannot use it
    stats()           the counters, only while IN_USE; microseconds, read-only
    measure()         the bytes that a release can make smaller
    release_call()    the function that gives the cache back, and its arguments; with ANYWHERE a C
                      function that makes no objects (see gc_pause)
    finish_work()     without ANYWHERE: wait for what main has given the device, on main
    start_trim()      without ANYWHERE: what makes a busy process give its cache back itself, to
                      step until it is over; or None
    ON_MAIN_ONLY      without ANYWHERE: whether finish_work() must come first, so never beside main
    CENSUS_ALONE      whether its tensors may be looked at only while no other thread computes
    CAN_LIMIT         whether its memory can be limited; then also, and in frameworks.py what that
                      means for a person:
    LIMIT_ANYWHERE    whether the agent's thread may do that while the host computes
    LIMIT_AT_IMPORT   whether the agent limits it right after the import, for `mpsbar run --limit`;
                      else the framework reads variables of its own
    shrink(limit)     the bytes it holds at least; without LIMIT_ANYWHERE it may release its cache
    set_limit(limit, call)  None: as it was before; `call` calls a C function that may wait
    read_limit()      the limit in force, None where none is known

A framework is only ever taken from sys.modules: the agent imports none.
"""

import sys
from types import ModuleType
from typing import Any, Optional

IN_USE = "in use"
NOT_INITIALISED = "not initialised"
NOT_KNOWN = "not known"

Stats = dict[str, Optional[int]]


def loaded(name: str) -> Optional[Any]:
    """Returns a module that the host has finished importing, else None."""
    module: Optional[ModuleType] = sys.modules.get(name)
    if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
        return None
    return module
