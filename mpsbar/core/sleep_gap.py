"""Tells from the times of two readings whether the computer slept between them. Pure.

Its own module, because trends, alerts, automatic frees and the process tracker need the same rule.
"""

# Seconds. What was known before such a gap says nothing of the time after it.
GAP = 60.0


def has_jumped(before: float, now: float) -> bool:
    """Returns whether the computer slept between the two times, or its clock was set."""
    return not 0 <= now - before <= GAP
