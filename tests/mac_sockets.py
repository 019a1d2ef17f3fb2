"""macOS's sockets for our end of the wire, on Linux: its errors, and kqueue below the real selectors.

From xnu (uipc_usrreq.c, kern_event.c). `pytest --mac-sockets` turns it on for every test; the fixture
`each_systems_sockets` runs a test with both.
"""

import errno
import importlib.util
import os
import select
import socket
import stat
import sys
import types
from collections import namedtuple
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

_READ, _WRITE = -1, -2  # EVFILT_READ, EVFILT_WRITE
_ADD, _DELETE, _EOF = 0x1, 0x2, 0x8000  # EV_ADD, EV_DELETE, EV_EOF
_ECONNREFUSED = 61  # macOS's number
_POLLED = {_READ: select.POLLIN, _WRITE: select.POLLOUT}

kevent = namedtuple("kevent", "ident filter flags")  # noqa: PYI024 - as select.kevent


class kqueue:  # noqa: N801 - as select.kqueue
    """A watch belongs to the descriptor, not to the file: closing the descriptor ends it, and a new
    file under the same number is not watched. A forked child does not have the queue."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._watched: dict[tuple[int, int], tuple[int, int]] = {}
        self.closed = False

    def fileno(self) -> int:
        raise NotImplementedError("no descriptor is behind the double of kqueue")

    def close(self) -> None:
        self.closed = True

    def control(
        self, changes: Iterable[kevent] | None, most: int, timeout: float | None = None
    ) -> list[kevent]:
        if self.closed:
            raise ValueError("I/O operation on closed kqueue object")
        if os.getpid() != self._pid:
            raise OSError(errno.EBADF, "a forked child does not have the queue")
        self._forget_closed()
        for change in changes or ():
            self._change(change)
        return self._wait(timeout)[:most] if most else []

    def _change(self, change: kevent) -> None:
        key = (change.ident, change.filter)
        if change.flags & _ADD:
            self._watched[key] = _identify(change.ident)  # EBADF where it is closed
        elif self._watched.pop(key, None) is None:
            raise FileNotFoundError(errno.ENOENT, "not watched")

    def _forget_closed(self) -> None:
        for key, file in list(self._watched.items()):
            try:
                is_same = _identify(key[0]) == file
            except OSError:
                is_same = False
            if not is_same:
                del self._watched[key]

    def _wait(self, timeout: float | None) -> list[kevent]:
        poll = select.poll()
        wanted: dict[int, int] = {}
        for ident, kind in self._watched:
            wanted[ident] = wanted.get(ident, 0) | _POLLED[kind]
        for ident, events in wanted.items():
            poll.register(ident, events)
        found = []
        for ident, events in poll.poll(None if timeout is None else timeout * 1000):
            end = _EOF if events & (select.POLLHUP | select.POLLERR) else 0
            for kind in (_READ, _WRITE):
                if (ident, kind) in self._watched and (end or events & _POLLED[kind]):
                    found.append(kevent(ident, kind, end))
        return found


def _identify(number: int) -> tuple[int, int]:
    status = os.fstat(number)
    return status.st_dev, status.st_ino


def load_selectors() -> types.ModuleType:
    """The standard library's module as it is on a Mac: KqueueSelector, on the double of kqueue."""
    system = types.ModuleType("select")
    vars(system).update(
        {n: v for n, v in vars(select).items() if "poll" not in n.lower()},
        kqueue=kqueue, kevent=kevent, KQ_FILTER_READ=_READ, KQ_FILTER_WRITE=_WRITE, KQ_EV_ADD=_ADD,
        KQ_EV_DELETE=_DELETE, KQ_EV_EOF=_EOF,
    )  # fmt: skip
    spec = importlib.util.find_spec("selectors")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with patch.dict(sys.modules, {"select": system}):
        spec.loader.exec_module(module)
    assert module.DefaultSelector.__name__ == "KqueueSelector"
    return module


class MacSocket(socket.socket):
    def connect(self, path: Any) -> None:
        """A full queue refuses, where Linux says "try again"; a plain file or folder is no socket,
        where Linux refuses."""
        try:
            super().connect(path)
        except BlockingIOError:
            raise ConnectionRefusedError(_ECONNREFUSED, "Connection refused") from None
        except ConnectionRefusedError:
            if stat.S_ISSOCK(os.stat(path).st_mode):
                raise
            raise OSError(errno.ENOTSOCK, "Socket operation on non-socket") from None

    def recv(self, *arguments: Any) -> bytes:
        """One that was closed with unread data has ended, where Linux says that it was reset."""
        try:
            return super().recv(*arguments)
        except ConnectionResetError:
            return b""


def use_mac_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    from mpsbar.system import child_process
    from mpsbar.system.macos import gpu
    from mpsbar.workers import connection, poll, request

    names = ("AF_UNIX", "SOCK_STREAM")
    double = SimpleNamespace(**{n: getattr(socket, n) for n in names}, socket=MacSocket)
    monkeypatch.setattr(connection, "socket", double)
    for module in (poll, request):
        monkeypatch.setattr(module, "sys", SimpleNamespace(platform="darwin"))
    selectors = load_selectors()
    for reader in (poll, request, child_process, gpu):
        monkeypatch.setattr(reader, "selectors", selectors)
