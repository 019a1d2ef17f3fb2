"""Readings that may take long: on a busy machine a thread can stand still for seconds, and hangs nowhere."""

from mpsbar.system.read_timeouts import TimeoutPool
from mpsbar.system.scan import Scanner

SECONDS = 120.0


def be_patient() -> None:
    """For this whole process. A test of reads that hang names its own seconds (see `hurry`)."""
    TimeoutPool.__init__.__defaults__ = (SECONDS,)
    Scanner.scan.__defaults__ = (SECONDS,)


def hurry(scanner: Scanner, stall_seconds: float = 0.1) -> None:
    """From now on a read that takes so long hangs. One that only waited for a processor may be among them, once."""
    scanner._readers._stall_seconds = stall_seconds
