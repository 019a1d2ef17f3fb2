"""Ends a process of this user, after checking that the pid is still the same process."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from mpsbar.core.actions import Stop, Stopped, StopState
from mpsbar.core.errors import reason_of
from mpsbar.system.platform import Computer


def stop(computer: Computer, action: Stop) -> Stopped:
    """Sends SIGINT, or SIGTERM if `firmly`; never SIGKILL. Never raises."""
    if action.pid <= 1 or action.pid == os.getpid():
        return _ended(action, "not_allowed")
    try:
        with _sender(action.pid) as send:
            # Nothing comes between this check and the signal; psutil checks once more.
            if computer.read_start(action.pid) != action.started:
                return _ended(action, "another")
            send(signal.SIGTERM if action.firmly else signal.SIGINT)
    except (ProcessLookupError, FileNotFoundError):
        return _ended(action, "gone")
    except PermissionError:
        return _ended(action, "not_allowed")
    except OSError as problem:
        return _ended(action, "failed", reason_of(problem))
    return _ended(action, "asked")


def _ended(action: Stop, state: StopState, error: str | None = None) -> Stopped:
    return Stopped(action.pid, action.name, state, action.firmly, error, action.started)


@contextmanager
def _sender(pid: int) -> Iterator[Callable[[signal.Signals], None]]:
    """A function that sends a signal: on Linux through a pidfd, which stays with its process;
    elsewhere through psutil, which checks that the pid was not used again."""
    handle = _open_handle(pid)
    if handle is None:
        import psutil  # here: importing it takes a tenth of the time of `mpsbar status`

        try:
            yield psutil.Process(pid).send_signal
        except psutil.NoSuchProcess:
            raise ProcessLookupError(pid) from None
        except psutil.AccessDenied:
            raise PermissionError(pid) from None
        return
    try:
        yield partial(signal.pidfd_send_signal, handle)
    finally:
        os.close(handle)


def _open_handle(pid: int) -> int | None:
    opener: Callable[[int], int] | None = getattr(os, "pidfd_open", None)
    if opener is None:
        return None
    try:
        return opener(pid)
    except ProcessLookupError:
        raise
    except OSError:  # an old kernel, or a sandbox that forbids it
        return None
