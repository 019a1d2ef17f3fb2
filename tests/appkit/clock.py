"""NSDate: points in the virtual time of the session."""

# ruff: noqa: N802 - the names are Objective-C's

from appkit import session
from appkit.objects import NSObject


class NSDate(NSObject, framework="Foundation"):
    def _setup(self) -> None:
        self._time = session.current().now

    @classmethod
    def date(cls) -> "NSDate":
        return cls.alloc()

    @classmethod
    def dateWithTimeIntervalSinceNow_(cls, seconds: float) -> "NSDate":
        return make_date(session.current().now + seconds)

    @classmethod
    def dateWithTimeIntervalSince1970_(cls, seconds: float) -> "NSDate":
        return make_date(seconds)

    @classmethod
    def dateWithTimeInterval_sinceDate_(cls, seconds: float, start: "NSDate") -> "NSDate":
        return make_date(start._time + seconds)

    @classmethod
    def distantFuture(cls) -> "NSDate":
        return make_date(64_092_211_200.0)  # 4001-01-01

    def timeIntervalSinceNow(self) -> float:
        return self._time - session.current().now

    def timeIntervalSince1970(self) -> float:
        return self._time

    def timeIntervalSinceDate_(self, other: "NSDate") -> float:
        return self._time - other._time

    def earlierDate_(self, other: "NSDate") -> "NSDate":
        return self if self._time <= other._time else other


def make_date(seconds: float) -> NSDate:
    made: NSDate = NSDate.alloc()
    made._time = float(seconds)
    return made
