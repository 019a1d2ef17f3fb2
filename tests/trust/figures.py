"""Counts attempts of one suite: how many were tried, survived, lost; prints them as a table."""

import traceback
from collections.abc import Callable


class Figures:
    def __init__(self, suite: str) -> None:
        self.suite = suite
        self.rows: list[tuple[str, int, int, str]] = []

    def run(self, name: str, attack: Callable[[], tuple[int, int]]) -> None:
        """`attack` returns how often it tried and how often mpsbar survived."""
        try:
            tried, survived = attack()
            note = ""
        except SkippedError as reason:
            tried, survived, note = 0, 0, f"not run: {reason}"
        except Exception as problem:
            traceback.print_exc()
            tried, survived, note = 1, 0, f"{type(problem).__name__}: {problem}"
        self.rows.append((name, tried, survived, note))
        print(
            f"{name:<58} tried {tried:>6}  survived {survived:>6}  lost {tried - survived:>4}  {note}",
            flush=True,
        )

    @property
    def lost(self) -> int:
        return sum(tried - survived for _, tried, survived, _ in self.rows)

    def end(self) -> int:
        """Print the sum; the exit code."""
        tried = sum(row[1] for row in self.rows)
        print(f"{self.suite}: tried {tried}, survived {tried - self.lost}, lost {self.lost}")
        return 1 if self.lost else 0


class SkippedError(Exception):
    """This computer cannot run the attack: no root, no namespaces."""
