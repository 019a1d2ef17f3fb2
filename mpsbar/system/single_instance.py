"""One instance at a time: the first holds a lock, a second can nudge it and end."""

import fcntl
import os
import time
from weakref import WeakSet

from mpsbar.system import paths
from mpsbar.system.files import make_folder
from mpsbar.system.ownership import require_safe

# HFS+ and some network file systems count whole seconds.
_COARSE = 1_000_000_000


class Claim:
    """That this process is the one; given up by close(), or by the process ending in any way."""

    def __init__(self, descriptor: int | None, why_unsure: str | None = None) -> None:
        self.why_unsure = why_unsure
        self._descriptor = descriptor
        self._seen = 0
        self.nudged()  # from now on
        _held.add(self)

    @property
    def is_sure(self) -> bool:
        """False where locks do not work: another instance may be running."""
        return self.why_unsure is None

    def nudged(self) -> bool:
        """Has a second start called since the last look? One fstat, cheap enough for each tick."""
        if self._descriptor is None:
            return False
        before, self._seen = self._seen, os.fstat(self._descriptor).st_mtime_ns
        return self._seen != before

    def close(self) -> None:
        """The file stays: if it were removed, two processes could hold two files of one name."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


_held: "WeakSet[Claim]" = WeakSet()


def claim(name: str = "menubar") -> Claim | None:
    """None: another process is the one. Where that cannot be known, a claim that is not sure."""
    file = paths.lock_file(name)
    try:
        make_folder(file.parent)
        require_safe(file)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        return Claim(None, problem.strerror or str(problem))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as problem:  # ENOLCK, ENOTSUP: a file system without locks
        os.close(descriptor)
        return Claim(None, problem.strerror or str(problem))
    _write_pid(descriptor)
    return Claim(descriptor)


def read_holder(name: str = "menubar") -> int | None:
    """The pid that the holder wrote; for a sentence, not to be signalled."""
    path = paths.lock_file(name)
    try:
        require_safe(path)
        with path.open("rb") as file:
            text = file.read(20).strip()
    except OSError:
        return None
    return int(text) if text.isdigit() and int(text) < 2**31 else None


def nudge(name: str = "menubar") -> bool:
    """Let the instance that runs know of this start; False if it cannot be reached."""
    file = paths.lock_file(name)
    try:
        require_safe(file)
        last = file.stat().st_mtime_ns
        now = max(time.time_ns(), last + _COARSE)
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
    """A forked child shares the lock, and would hold it after our end."""
    for mine in list(_held):
        mine.close()


os.register_at_fork(after_in_child=_close_in_child)
