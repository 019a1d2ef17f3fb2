"""Asks every worker of this user at once; one that is slow keeps its last values."""

import contextlib
import errno
import os
import selectors
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mpsbar.agent import protocol, user_folders
from mpsbar.core.machine import SAME_START
from mpsbar.core.snapshot import Worker
from mpsbar.system.ownership import is_running
from mpsbar.workers.connection import NotListeningError, WorkerConnection
from mpsbar.workers.parse import parse_hello, parse_stats, parse_worker

POLL_SECONDS = 0.5
# One that was silent in the last poll has only so long: it must not delay every tick.
SILENT_SECONDS = 0.03
# In this time nearly all have answered; then all answers are read in one go. To be woken for each
# of them would cost more than reading it.
_ANSWER_SECONDS = 0.0015
MAX_CONNECTIONS = 150
# File systems stamp directories by a clock that may stand still for some milliseconds; a list that
# was read sooner after the last change may lack the next one.
_SETTLED_SECONDS = 0.5
# How long a worker that refuses on macOS keeps its row: its queue of connections may be full.
_REFUSING_SECONDS = 60.0


@dataclass(slots=True)
class _Polled:
    """One worker, its connection and its last answers."""

    pid: int
    path: str
    connection: WorkerConnection | None = None
    hello: Worker | None = None
    stats: Any = None
    parsed: Worker | None = None  # from the stats
    answered: float | None = None  # when the stats came
    has_failed: bool = False
    reconnected: bool = False  # once in a poll is enough
    was_closed: bool = False  # a connection, by the worker and since its last answer
    was_silent: bool = False  # in the last poll

    @property
    def is_waiting(self) -> bool:
        return self.connection is not None and self.connection.is_waiting("stats")


class WorkerPoll:
    """Keeps one connection to each worker. Call `poll` and `close` from one thread.

    `read_start` tells when a process started, so that a pid that is used again is noticed.
    """

    def __init__(
        self,
        read_start: Callable[[int], float] | None = None,
        most_connections: int = MAX_CONNECTIONS,
    ) -> None:
        self._most_connections = most_connections
        self._read_start = read_start
        self._polled: dict[str, _Polled] = {}
        self._sockets = SocketList()
        self._selector = selectors.DefaultSelector()

    def poll(
        self, gpu_clients: dict[int, bool] | None = None, seconds: float = POLL_SECONDS
    ) -> tuple[Worker, ...]:
        """Returns all workers with their newest values; one that does not answer in time keeps the
        last.

        `gpu_clients`: which processes have a Metal device, for agents that cannot find out.
        """
        self._find_workers()
        hints = gpu_clients or {}
        if self._is_waiting(with_silent=True):
            self._receive_all(0.0, hints)  # answers to the last poll that came late
        for polled in list(self._polled.values()):
            polled.reconnected = False
            self._ask(polled, hints.get(polled.pid))
        start = time.monotonic()
        if self._polled and seconds:
            time.sleep(min(seconds, _ANSWER_SECONDS))
            for polled in list(self._polled.values()):
                if polled.connection is not None:
                    self._receive(polled, hints)
        for deadline, with_silent in (
            (start + min(seconds, SILENT_SECONDS), True),
            (start + seconds, False),
        ):
            while (left := deadline - time.monotonic()) > 0 and self._is_waiting(with_silent):
                self._receive_all(left, hints)
        now = time.monotonic()
        for polled in self._polled.values():
            polled.was_silent = polled.is_waiting
        return tuple(_describe(polled, now) for polled in self._polled.values())

    def _receive_all(self, seconds: float, hints: dict[int, bool]) -> None:
        for key, _ in self._selector.select(seconds):
            self._receive(key.data, hints)

    def close(self) -> None:
        for polled in list(self._polled.values()):
            self._disconnect(polled)
        self._selector.close()

    def _find_workers(self) -> None:
        pids = {path: pid for pid, path in self._sockets.list()}
        for path in [path for path in self._polled if path not in pids]:
            self._forget(self._polled[path])
        for path, pid in pids.items():
            if path not in self._polled:
                self._polled[path] = _Polled(pid, path)

    def _ask(self, polled: _Polled, gpu_client: bool | None) -> None:
        try:
            if polled.connection is None:
                self._connect(polled)
            assert polled.connection is not None
            if not polled.connection.is_waiting("stats"):
                hint = {} if gpu_client is None else {"gpu_client": gpu_client}
                polled.connection.ask_again("stats", hint)
            polled.connection.send()
        except NotListeningError:
            self._handle_refusal(polled)
        except (FileNotFoundError, PermissionError):
            self._forget(polled)  # it has ended, or is not this user's
        except OSError as error:
            if error.errno == errno.ENOTSOCK:  # a plain file: macOS's word, where Linux refuses
                self._handle_refusal(polled)
            else:
                self._reconnect(polled, gpu_client)

    def _reconnect(self, polled: _Polled, gpu_client: bool | None) -> None:
        """Connects again: the agent closed an idle connection, or its process ended."""
        polled.was_closed = polled.was_closed or polled.connection is not None
        self._disconnect(polled)
        if not polled.reconnected:
            polled.reconnected = True
            self._ask(polled, gpu_client)

    def _connect(self, polled: _Polled) -> None:
        if len(self._selector.get_map()) >= self._most_connections:
            raise OSError(errno.EMFILE, "too many workers for this process")
        polled.connection = WorkerConnection(polled.path, polled.pid)
        polled.connection.ask("hello")
        self._selector.register(polled.connection.socket, selectors.EVENT_READ, polled)

    def _is_waiting(self, with_silent: bool) -> bool:
        return any(
            polled.is_waiting and (with_silent or not polled.was_silent)
            for polled in self._polled.values()
        )

    def _receive(self, polled: _Polled, hints: dict[int, bool]) -> None:
        assert polled.connection is not None
        try:
            answers = polled.connection.receive()
        except (OSError, protocol.ProtocolError):
            self._reconnect(polled, hints.get(polled.pid))
            return
        for method, result in answers:
            if method == "hello":
                polled.hello, polled.parsed = parse_hello(polled.pid, result), None
            elif method == "stats" and result is None:
                polled.has_failed = True  # an error for an answer: its last values stand
            elif method == "stats":
                polled.has_failed = polled.was_closed = False
                if result is not polled.stats and result != polled.stats:
                    polled.stats, polled.parsed = result, None
                polled.answered = time.monotonic()

    def _disconnect(self, polled: _Polled) -> None:
        if polled.connection is not None:
            if polled.connection.socket in self._selector.get_map():
                self._selector.unregister(polled.connection.socket)
            polled.connection.close()
            polled.connection = None

    def _forget(self, polled: _Polled) -> None:
        self._disconnect(polled)
        self._polled.pop(polled.path, None)

    def _handle_refusal(self, polled: _Polled) -> None:
        """Removes the socket of a killed worker. A refused connection alone does not prove that it
        was: macOS refuses too while the queue of a living one is full, but a living one does not
        close a connection that is asked at every tick; a process that became another has."""
        if self._has_ended(polled):
            self._forget(polled)
            with contextlib.suppress(OSError):
                Path(polled.path).unlink()
            return
        answered = polled.answered
        is_known = answered is not None and time.monotonic() - answered < _REFUSING_SECONDS
        if sys.platform == "darwin" and is_known and not polled.was_closed:
            self._disconnect(polled)
        else:
            self._forget(polled)

    def _has_ended(self, polled: _Polled) -> bool:
        """Returns whether the process that made the socket is gone, or its pid is another's."""
        if not is_running(polled.pid):
            return True
        if self._read_start is None:
            return False
        try:
            made = os.lstat(polled.path).st_mtime
            return self._read_start(polled.pid) > made + SAME_START
        except (ProcessLookupError, FileNotFoundError, PermissionError):
            return True
        except OSError:
            return False


def _describe(polled: _Polled, now: float) -> Worker:
    """Returns the worker as it is now: the same object while nothing changes."""
    if polled.parsed is None:
        hello = polled.hello or parse_hello(polled.pid, None)
        polled.parsed = parse_stats(hello, polled.stats, "live", 0.0)
    waits = polled.connection is None or polled.is_waiting
    if not waits and not polled.has_failed:
        return polled.parsed
    age = None if polled.answered is None else now - polled.answered
    return replace(polled.parsed, state="busy", age=age)


class RecordedWorkers:
    """The workers of a recorded machine: the same methods as WorkerPoll, no connections."""

    def __init__(self, recorded: list[dict[str, Any]]) -> None:
        self._recorded = recorded

    def poll(self, gpu_clients: dict[int, bool] | None = None) -> tuple[Worker, ...]:  # noqa: ARG002
        return tuple(
            parse_worker(worker["pid"], worker.get("hello"), worker.get("stats"), "live", 0.0)
            for worker in self._recorded
        )

    def close(self) -> None:
        return


class SocketList:
    """The sockets in the run directories, listed again only when a directory changed."""

    def __init__(self) -> None:
        self._folders = (
            user_folders.find_run_folders()
        )  # asks the password database: once is enough
        self._stamps: list[int | None] | None = None
        self._found: list[tuple[int, str]] = []

    def list(self) -> list[tuple[int, str]]:
        """Lists the pid and the path of each."""
        stamps = [_read_stamp(folder) for folder in self._folders]
        if stamps != self._stamps:
            try:
                self._found = _list_all(self._folders, stamps)
            except OSError:  # out of descriptors: what was known stays, and is listed again
                return self._found
            newest = max((stamp for stamp in stamps if stamp is not None), default=0)
            is_settled = time.time() - newest / 1e9 > _SETTLED_SECONDS
            self._stamps = stamps if is_settled else None
        return self._found


def _list_all(folders: list[str], stamps: list[int | None]) -> list[tuple[int, str]]:
    usable = [folder for folder, stamp in zip(folders, stamps, strict=True) if stamp is not None]
    return sorted(found for folder in usable for found in user_folders.list_directory(folder))


def _read_stamp(folder: str) -> int | None:
    """Returns when a file was added or removed; None if the folder is missing or not ours."""
    try:
        user_folders.check(folder)
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - at every poll
    except OSError:
        return None
