"""Every worker of this user, asked at once, each for no longer than all may take."""

import contextlib
import os
import selectors
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mpsbar.agent import places, protocol
from mpsbar.core.snapshot import Worker
from mpsbar.workers.connection import Connection, Refused
from mpsbar.workers.parse import parse_hello, parse_stats, parse_worker

POLL_SECONDS = 0.5
# File systems stamp directories by a clock that may stand still for some milliseconds; what was
# listed sooner after the last change may have missed the next one.
_SETTLED = 0.5


@dataclass(slots=True)
class _Known:
    pid: int
    path: str
    connection: Connection | None = None
    hello: Worker | None = None
    stats: Any = None
    parsed: Worker | None = None  # from the stats
    heard: float | None = None  # when the stats came
    has_failed: bool = False
    reconnected: bool = False  # once in a poll is enough


class WorkerPoll:
    """Keeps one connection to each worker; `poll` is the only thing to call, from one thread."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._sockets = Sockets()
        self._selector = selectors.DefaultSelector()

    def poll(
        self, gpu_clients: dict[int, bool] | None = None, seconds: float = POLL_SECONDS
    ) -> tuple[Worker, ...]:
        """All workers with their newest values; who does not answer in time keeps the last ones.

        `gpu_clients` tells which processes hold a Metal device, for agents that cannot tell.
        """
        deadline = time.monotonic() + seconds
        self._look_for_workers()
        hints = gpu_clients or {}
        for known in list(self._known.values()):
            known.reconnected = False
            self._ask(known, hints.get(known.pid))
        while (left := deadline - time.monotonic()) > 0 and self._is_waiting():
            for key, _ in self._selector.select(left):
                self._receive(key.data, hints)
        now = time.monotonic()
        return tuple(_describe(known, now) for known in self._known.values())

    def close(self) -> None:
        for known in list(self._known.values()):
            self._disconnect(known)
        self._selector.close()

    def _look_for_workers(self) -> None:
        found = {path: pid for pid, path in self._sockets.list()}
        for path in [path for path in self._known if path not in found]:
            self._forget(self._known[path])
        for path, pid in found.items():
            if path not in self._known:
                self._known[path] = _Known(pid, path)

    def _ask(self, known: _Known, gpu_client: bool | None) -> None:
        try:
            if known.connection is None:
                self._connect(known)
            assert known.connection is not None
            if not known.connection.is_waiting("stats"):
                hint = {} if gpu_client is None else {"gpu_client": gpu_client}
                known.connection.ask("stats", hint)
            known.connection.send()
        except Refused:
            self._bury(known)
        except (FileNotFoundError, PermissionError):
            self._forget(known)  # it has ended, or is not this user's
        except OSError:
            self._reconnect(known, gpu_client)

    def _reconnect(self, known: _Known, gpu_client: bool | None) -> None:
        """The connection broke: closed as idle, or its process died. Trying anew tells."""
        self._disconnect(known)
        if not known.reconnected:
            known.reconnected = True
            self._ask(known, gpu_client)

    def _connect(self, known: _Known) -> None:
        known.connection = Connection(known.path)
        known.connection.ask("hello")
        self._selector.register(known.connection.socket, selectors.EVENT_READ, known)

    def _is_waiting(self) -> bool:
        connections = (known.connection for known in self._known.values())
        return any(c is not None and c.is_waiting("stats") for c in connections)

    def _receive(self, known: _Known, hints: dict[int, bool]) -> None:
        assert known.connection is not None
        try:
            answers = known.connection.receive()
        except (OSError, protocol.ProtocolError):
            self._reconnect(known, hints.get(known.pid))
            return
        for method, result in answers:
            if method == "hello":
                known.hello, known.parsed = parse_hello(known.pid, result), None
            elif method == "stats" and result is None:
                known.has_failed = True  # an error for an answer: its last values stand
            elif method == "stats":
                known.has_failed = False
                if result != known.stats:
                    known.stats, known.parsed = result, None
                known.heard = time.monotonic()

    def _disconnect(self, known: _Known) -> None:
        if known.connection is not None:
            if known.connection.socket in self._selector.get_map():
                self._selector.unregister(known.connection.socket)
            known.connection.close()
            known.connection = None

    def _forget(self, known: _Known) -> None:
        self._disconnect(known)
        self._known.pop(known.path, None)

    def _bury(self, known: _Known) -> None:
        """Remove what a killed worker left; only a refused connection proves that it is dead."""
        self._forget(known)
        with contextlib.suppress(OSError):
            Path(known.path).unlink()


def _describe(known: _Known, now: float) -> Worker:
    """The very same object while nothing changes."""
    if known.parsed is None:
        hello = known.hello or parse_hello(known.pid, None)
        known.parsed = parse_stats(hello, known.stats, "live", 0.0)
    waits = known.connection is None or known.connection.is_waiting("stats")
    if not waits and not known.has_failed:
        return known.parsed
    age = None if known.heard is None else now - known.heard
    return replace(known.parsed, state="busy", age=age)


class RecordedWorkers:
    """Answers like Workers; nothing is connected."""

    def __init__(self, told: list[dict[str, Any]]) -> None:
        self._told = told

    def poll(self, gpu_clients: dict[int, bool] | None = None) -> tuple[Worker, ...]:  # noqa: ARG002
        return tuple(
            parse_worker(one["pid"], one.get("hello"), one.get("stats"), "live", 0.0)
            for one in self._told
        )

    def close(self) -> None:
        return


class Sockets:
    def __init__(self) -> None:
        self._folders = places.candidates()  # asks the password database: once is enough
        self._stamps: list[int | None] | None = None
        self._found: list[tuple[int, str]] = []

    def list(self) -> list[tuple[int, str]]:
        """(pid, path) of each."""
        stamps = [_read_stamp(folder) for folder in self._folders]
        if stamps != self._stamps:
            self._found = places.list_sockets(self._folders)
            newest = max((stamp for stamp in stamps if stamp is not None), default=0)
            is_settled = time.time() - newest / 1e9 > _SETTLED
            self._stamps = stamps if is_settled else None
        return self._found


def _read_stamp(folder: str) -> int | None:
    """When something in it came or went; None where it is not, or not safely ours."""
    try:
        places.check(folder)
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - at every look
    except OSError:
        return None
