"""How fast something counts, from readings at different times. Pure."""

from collections import deque
from typing import Optional

WINDOW_SECONDS = 60.0
SPACING_SECONDS = 1.0
# tqdm may store its count up to ten seconds late: that is no standstill.
LATE_SECONDS = 10.0


class RateMeter:
    """The times at which a count changed, over the last minute, or at least the last change."""

    def __init__(self, started: float, began_at: float) -> None:
        self._started = started
        self._began_at = began_at
        self._points: deque[tuple[float, float]] = deque(maxlen=int(WINDOW_SECONDS) + 2)
        self.moved_at = started

    def add(self, now: float, done: float) -> None:
        points = self._points
        if points and done == points[-1][1]:
            # Perhaps with an earlier time than before: tqdm stores the time of a count after it.
            return
        if points and (done < points[-1][1] or now < points[-1][0]):
            points.clear()  # the count was reset, or the clock set back
            self._started, self._began_at = now, done
        if len(points) > 1 and now - points[-2][0] < SPACING_SECONDS:
            points.pop()
        points.append((now, done))
        self.moved_at = now

    def rate(self, now: float) -> Optional[float]:
        """Returns counts a second, or None if it has not counted yet."""
        points = [point for point in self._points if now - point[0] <= WINDOW_SECONDS]
        if len(points) < 2:
            points = list(self._points)[-2:]
        if not points:
            return None
        last, done = points[-1]
        first, done_first = points[0] if len(points) > 1 else (self._started, self._began_at)
        if last <= first or done <= done_first:
            return None
        usual = (last - first) / max(1, len(points) - 1)
        end = last if now - last <= 2 * usual + LATE_SECONDS else now
        return (done - done_first) / (end - first)
