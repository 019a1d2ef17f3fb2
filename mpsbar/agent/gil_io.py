"""Calls on the agent's sockets that keep the GIL, and one that waits without it.

Python gives the GIL away around each call on a socket. In a busy host that is worth three waits for
the GIL in every poll, and each makes the host's own thread wait too; on a socket that does not
block, the call itself takes a few microseconds (figures: make bench ARGS=training).

All of them take descriptor numbers and none is Python's `socket` or `select`: gevent and eventlet
replace those, and driven by our thread their versions crash the host. A number is used only while
`is_ours`: the host may have closed it (os.closerange) and got it again for a file of its own. No
Python code of the host runs between that check and the use, nor while a socket is being made.
"""

import ctypes
import os
import socket
import struct
import sys
from typing import Any

POLLIN, POLLOUT = 0x1, 0x4  # the same on Linux and macOS

# The host may have given SIGPIPE its deadly default back; on macOS a socket option says the same.
_SEND_FLAGS = getattr(socket, "MSG_NOSIGNAL", 0) | socket.MSG_DONTWAIT
_RECEIVE_BYTES = 8 * 1024  # requests are short; what is longer comes in pieces
_FAMILY_AND_PATH = 2 + 108  # struct sockaddr_un; macOS: 2 + 104

_libc = ctypes.PyDLL(None, use_errno=True)  # keeps the GIL
_recv, _send, _accept, _getsockname = _libc.recv, _libc.send, _libc.accept, _libc.getsockname
_bind, _connect = _libc.bind, _libc.connect
for _call in (_bind, _connect):
    _call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32]
    _call.restype = ctypes.c_int
for _call in (_recv, _send):
    _call.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    _call.restype = ctypes.c_ssize_t
for _call in (_accept, _getsockname):
    _call.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    _call.restype = ctypes.c_int
_close = _libc.close

# Made once: each array of ctypes has a class of its own, which only the host's collector would end.
_address = ctypes.create_string_buffer(_FAMILY_AND_PATH)
_length = ctypes.c_uint32()

# Lets the GIL go. Without argtypes: their conversion allocates objects that the collector tracks,
# and gc_pause calls this while collections are allowed. Its arguments are ctypes objects.
poll = ctypes.CDLL(None).poll


class PollEntry(ctypes.Structure):
    """struct pollfd; a negative number is passed over."""

    _fields_ = [("number", ctypes.c_int), ("events", ctypes.c_short), ("found", ctypes.c_short)]


def poll_arguments(entries: Any, count: int, seconds: float) -> "tuple[Any, Any, Any]":
    """The arguments of `poll`; at least a millisecond, or a short wait would spin."""
    milliseconds = max(1, min(int(seconds * 1000 + 0.999), 60_000))
    return entries, ctypes.c_ulong(count), ctypes.c_int(milliseconds)


def sleep(seconds: float) -> None:
    """time.sleep() may be gevent's."""
    poll(*poll_arguments(None, 0, seconds))


class ReceiveBuffer:
    """Where received bytes land; one for a thread."""

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(_RECEIVE_BYTES)
        self._address = ctypes.addressof(self._memory)

    def receive(self, number: int) -> bytes:
        """What has arrived, b"" at the end; BlockingIOError when there is nothing yet."""
        length = _recv(number, self._address, _RECEIVE_BYTES, socket.MSG_DONTWAIT)
        if length < 0:
            _raise()
        return ctypes.string_at(self._address, length)


def send(number: int, data: bytearray) -> int:
    """How many bytes went out; BlockingIOError when none would."""
    sent = _send(number, bytes(data), len(data), _SEND_FLAGS)
    if sent < 0:
        _raise()
    return int(sent)


def listen(path: str, backlog: int) -> int:
    """The descriptor of a new socket that listens at `path` and does not block."""
    address = unix_address(os.fsencode(path))
    number = _make_socket()
    if _bind(number, address, len(address)) != 0 or _libc.listen(number, backlog) != 0:
        _raise_after_closing(number)
    return number


def knock(path: str) -> None:
    """Connect to `path` and hang up at once: whoever waits for clients there wakes up."""
    address = unix_address(os.fsencode(path))
    number = _make_socket()
    _connect(number, address, len(address))
    _close(number)


def unix_address(path: bytes, platform: str = sys.platform) -> bytes:
    """struct sockaddr_un; macOS has a length in its first byte."""
    length = 2 + len(path) + 1
    head = (
        struct.pack("=BB", length, socket.AF_UNIX)
        if platform == "darwin"
        else struct.pack("=H", socket.AF_UNIX)
    )
    return head + path + b"\0"


def accept(number: int) -> int:
    """The descriptor of the next client; BlockingIOError when there is none."""
    client = _accept(number, None, None)
    if client < 0:
        _raise()
    client = _lift(client)
    os.set_inheritable(client, False)
    return int(client)


def bound_path(number: int) -> bytes:
    """The path a Unix socket is bound to, for a client's connection its listener's; else b""."""
    _length.value = _FAMILY_AND_PATH
    if _getsockname(number, _address, ctypes.byref(_length)) != 0:
        return b""
    return parse_unix_address(_address.raw[: _length.value])


def parse_unix_address(raw: bytes, platform: str = sys.platform) -> bytes:
    """The path in a struct sockaddr_un; b"" for any other address."""
    family = raw[1:2] if platform == "darwin" else raw[:1]
    return raw[2:].split(b"\0")[0] if family == bytes([socket.AF_UNIX]) else b""


def is_ours(number: int, path: bytes) -> bool:
    """Whether this descriptor is still the socket that was bound to `path`, or a client of it."""
    return path != b"" and bound_path(number) == path


def close_ours(number: int, path: bytes) -> None:
    if is_ours(number, path):
        _close(number)


def _lift(number: int) -> int:
    """The same file at a number that is no standard stream's: a daemon opens those again."""
    too_low = []
    while 0 <= number < 3:
        too_low.append(number)
        number = int(_libc.dup(number))
    for each in too_low:
        _close(each)
    if number < 0:
        _raise()
    return number


def _make_socket() -> int:
    """A new socket that does not block."""
    number = int(_libc.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0))
    if number < 0:
        _raise()
    number = _lift(number)
    os.set_inheritable(number, False)
    os.set_blocking(number, False)
    return number


def _raise_after_closing(number: int) -> None:
    code = ctypes.get_errno()
    _close(number)
    raise OSError(code, os.strerror(code))


def _raise() -> None:
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code))  # becomes BlockingIOError and its like by itself
