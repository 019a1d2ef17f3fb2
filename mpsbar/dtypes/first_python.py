"""Tries one Python after the other until one has torch: the same rule for every command."""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

# After these the next Python is tried. If none has torch, the first such result is returned: that
# Python may be the one the user meant.
_GO_ON = ("unsafe", "not_python", "no_torch", "no_python")


class _Result(Protocol):
    @property
    def ended(self) -> str: ...


_Found = TypeVar("_Found", bound=_Result)


def run_in_first(pythons: Iterable[str], run: Callable[[str], _Found]) -> _Found | None:
    """Returns the result of the first Python that has torch; None if there is no Python.

    If none has, of the first that may not be run, else that cannot run, else that has no torch.
    """
    results = []
    for python in pythons:
        result = run(python)
        if result.ended not in _GO_ON:
            return result
        results.append(result)
    return min(results, key=lambda result: _GO_ON.index(result.ended), default=None)
