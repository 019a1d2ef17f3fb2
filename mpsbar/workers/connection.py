"""One connection to one worker: non-blocking, and only to processes of this user."""

import contextlib
import os
import resource
import socket
from typing import Any

from mpsbar.agent import peer, protocol

# An answer has some hundred bytes; the rest of a longer one is read the next time.
_CHUNK = 4096
# macOS starts programs with at most 256 open files. No computer has more workers than this, and
# select() in some library may not like high numbers.
_WANTED_FILES = 4096
# Of them for scanning, the history, the log, actions and what a user interface opens.
_RESERVED_FILES = 64


class NotListeningError(Exception):
    """Nobody listens at the socket: its process has ended and left the file.

    On macOS a living process refuses too, while its queue of connections is full.
    """


class WorkerConnection:
    """Sends requests and matches answers to them in whatever order they come."""

    def __init__(self, path: str, pid: int | None = None) -> None:
        """Connects; raises PermissionError where the other end is another process than `pid`."""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self._unsent = bytearray()
        self._unparsed = bytearray()
        self._number = 0
        self._asked: dict[int, str] = {}
        self._repeated: dict[str, tuple[int, dict[str, Any] | None, bytes]] = {}
        self._last: tuple[bytes, protocol.Message] = (b"", {})  # the last line, and what it says
        try:
            self.socket.connect(path)
            if peer.read_uid(self.socket) != os.geteuid():
                raise PermissionError(f"{path} is served by another user")
            served_by = None if pid is None else peer.read_pid(self.socket)
            if served_by not in (None, pid):
                raise PermissionError(f"{path} is served by another process ({served_by})")
        except ConnectionRefusedError:
            self.close()
            raise NotListeningError from None
        except OSError:
            self.close()
            raise

    def ask(self, method: str, params: dict[str, Any] | None = None) -> None:
        self._number += 1
        self._asked[self._number] = method
        self._unsent += protocol.request(self._number, method, params)

    def ask_again(self, method: str, params: dict[str, Any]) -> None:
        """Sends the same request as the last time, with the same number; only when it is answered.

        An answer that is the same to the byte is then not parsed again: most workers change nothing
        between two ticks, and parsing is a third of what asking them costs.
        """
        number, known, request = self._repeated.get(method, (0, None, b""))
        if known != params:
            self._number = number = self._number + 1
            request = protocol.request(number, method, params)
            self._repeated[method] = (number, params, request)
        self._asked[number] = method
        self._unsent += request

    def is_waiting(self, method: str) -> bool:
        return method in self._asked.values()

    def send(self) -> None:
        if self._unsent:
            with contextlib.suppress(BlockingIOError):
                del self._unsent[: self.socket.send(self._unsent)]

    def receive(self) -> list[tuple[str, Any]]:
        """Returns (method, result) of what has arrived; OSError when the connection is over."""
        try:
            data = self.socket.recv(_CHUNK)
        except BlockingIOError:
            return []
        if not data:
            raise ConnectionResetError("the worker closed the connection")
        self._unparsed += data
        return [
            answer
            for line in protocol.split_lines(self._unparsed)
            if (answer := self._match(self._decode(line))) is not None
        ]

    def close(self) -> None:
        self.socket.close()

    def _decode(self, line: bytes) -> protocol.Message:
        if line != self._last[0]:
            self._last = (line, protocol.decode(line))
        return self._last[1]

    def _match(self, message: protocol.Message) -> tuple[str, Any] | None:
        number = message.get("id")
        method = self._asked.pop(number, None) if isinstance(number, int) else None
        return None if method is None else (method, message.get("result"))


def raise_connection_limit() -> int:
    """Lets this process open more files, as far as useful and allowed; returns how many connections
    fit.
    """
    return _raise_file_limit() - _RESERVED_FILES


def _raise_file_limit() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(_WANTED_FILES, hard)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return _WANTED_FILES if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (OSError, ValueError):  # a sandbox
        return soft
    return most
