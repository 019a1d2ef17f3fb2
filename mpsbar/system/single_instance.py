"""One instance at a time: the first locks a file; a second one notifies it and exits."""

import fcntl
import os
import time
from weakref import WeakSet

from mpsbar.core.errors import reason_of
from mpsbar.system import paths
from mpsbar.system.files import make_folder, read_bytes
from mpsbar.system.ownership import require_safe

_MENU_BAR = "menubar"
# HFS+ and some network file systems count whole seconds.
_ONE_SECOND_NS = 1_000_000_000


class Claim:
    """This process is the one instance, until close() or until it ends in any way."""

    def __init__(self, descriptor: int | None, why_unsure: str | None = None) -> None:
        self.why_unsure = why_unsure
        self._descriptor = descriptor
        self._modified = 0
        self.nudged()  # only later nudges count
        _locks.add(self)

    @property
    def is_sure(self) -> bool:
        """Returns False where locks do not work: another instance may be running."""
        return self.why_unsure is None

    def nudged(self) -> bool:
        """Returns whether a second start has notified us since the last call; one fstat."""
        if self._descriptor is None:
            return False
        before, self._modified = self._modified, os.fstat(self._descriptor).st_mtime_ns
        return self._modified != before

    def close(self) -> None:
        """Unlocks the file. It stays: else two processes could lock two files of one name."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


_locks: "WeakSet[Claim]" = WeakSet()


def claim(name: str = _MENU_BAR) -> Claim | None:
    """Makes this process the one instance of the name; returns None if another process is.

    Where locks do not work, it returns a claim that is not sure.
    """
    file = paths.lock_file(name)
    try:
        make_folder(file.parent)
        require_safe(file)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        return Claim(None, reason_of(problem))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as problem:  # ENOLCK, ENOTSUP: a file system without locks
        os.close(descriptor)
        return Claim(None, reason_of(problem))
    _write_pid(descriptor)
    return Claim(descriptor)


def read_holder(name: str = _MENU_BAR) -> int | None:
    """The pid of the instance that runs; for a sentence only, it may be out of date."""
    path = paths.lock_file(name)
    try:
        require_safe(path)
        text = read_bytes(path, 20).strip()
    except OSError:
        return None
    return int(text) if text.isdigit() and int(text) < 2**31 else None


def nudge() -> bool:
    """Tells the instance that runs of this start; False if it cannot be reached."""
    file = paths.lock_file(_MENU_BAR)
    try:
        require_safe(file)
        last = file.stat().st_mtime_ns
        now = max(time.time_ns(), last + _ONE_SECOND_NS)
        os.utime(file, ns=(now, now))
    except OSError:
        return False
    return True


def _write_pid(descriptor: int) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError:
        pass  # a full disk: the lock holds without it


def _close_in_child() -> None:
    """Closes the locks in a forked child, which would keep them after our end."""
    for lock in list(_locks):
        lock.close()


os.register_at_fork(after_in_child=_close_in_child)
