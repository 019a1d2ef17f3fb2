"""Calls on the agent's sockets and files that keep the GIL, and one that waits without it.

Python gives the GIL away around each call on a socket. In a busy host that is worth three waits for
the GIL in every poll, and each makes the host's own thread wait too; on a socket that does not
block, the call itself takes a few microseconds (figures: make bench ARGS=training).

All of them take descriptor numbers and none is Python's `socket` or `select`: gevent and eventlet
replace those, and driven by our thread their versions crash the host. The host may have closed a
number (os.closerange) and got it again for a file of its own. So a number is used in the same step
of C code in which it is seen to be ours: the kernel says which path that socket was bound to.
A step is one of a `for` loop over an iterator that is made of C functions; the GIL is kept, and
a thread that has just closed our number needs it before it can open a file there. What has no such
mark yet, a new socket or a file, is made and used, or closed again, in one step too.
"""

import ctypes
import errno
import os
import socket
import struct
import sys
from collections import deque
from collections.abc import Iterator
from itertools import repeat, starmap
from operator import attrgetter, getitem
from typing import Any, Callable

POLLIN, POLLOUT = 0x1, 0x4  # the same on Linux and macOS

# The host may have given SIGPIPE its deadly default back; on macOS a socket option says the same.
_SEND_FLAGS = getattr(socket, "MSG_NOSIGNAL", 0) | socket.MSG_DONTWAIT
_RECEIVE_BYTES = 8 * 1024  # requests are short; what is longer comes in pieces
_ADDRESS_BYTES = 2 + 108  # struct sockaddr_un; macOS: 2 + 104

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
# open() takes its mode as a variable argument, which has another place on Apple silicon: ctypes
# knows that by the types of the others.
_open, _read, _write = _libc.open, _libc.read, _libc.write
_open.argtypes = [ctypes.c_char_p, ctypes.c_int]
for _call in (_read, _write):
    _call.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
    _call.restype = ctypes.c_ssize_t
_CLOSED_AT_EXEC = getattr(os, "O_CLOEXEC", 0)
_MAX_READ = 1024
_ReadBuffer = ctypes.c_char * _MAX_READ  # the class, made once too

_memset = _libc.memset

# Made once: each array of ctypes has a class of its own, which only the host's collector would end.
_address = ctypes.create_string_buffer(_ADDRESS_BYTES + 1)  # and a zero
_length = ctypes.c_uint32()
_pointer_to_length = ctypes.byref(_length)
_UNIX = bytes([socket.AF_UNIX])


def view_address(address: Any, platform: str = sys.platform) -> "tuple[Any, Any]":
    """Returns views of family (its `raw`) and path (its `value`) in a struct sockaddr_un."""
    family = (ctypes.c_char * 1).from_buffer(address, 1 if platform == "darwin" else 0)
    return family, (ctypes.c_char * (_ADDRESS_BYTES - 1)).from_buffer(address, 2)


_family, _path = view_address(_address)

# Lets the GIL go. Without argtypes: their conversion allocates objects that the collector tracks,
# and gc_pause calls this while collections are allowed. So would an array or a c_int: its arguments
# are plain numbers, None and what byref() has made before.
poll = ctypes.CDLL(None).poll


class PollEntry(ctypes.Structure):
    """struct pollfd; a negative number is passed over."""

    _fields_ = [("number", ctypes.c_int), ("events", ctypes.c_short), ("found", ctypes.c_short)]


def poll_arguments(entries: Any, count: int, seconds: float) -> "tuple[Any, Any, Any]":
    """Returns the arguments of `poll`; at least a millisecond, or a short wait would spin."""
    milliseconds = max(1, min(int(seconds * 1000 + 0.999), 60_000))
    return entries if entries is None else ctypes.byref(entries), count, milliseconds


def sleep(seconds: float) -> None:
    """Sleeps without time.sleep(), which gevent may have replaced."""
    poll(*poll_arguments(None, 0, seconds))


class ReceiveBuffer:
    """Memory for received bytes; one for a thread."""

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(_RECEIVE_BYTES)
        self._address = ctypes.addressof(self._memory)

    def receive(self, number: int, path: bytes) -> bytes:
        """Returns what has arrived, b"" at the end; BlockingIOError when there is nothing yet."""
        arguments = (self._address, _RECEIVE_BYTES, socket.MSG_DONTWAIT)
        length = use_ours(number, path, _recv, *arguments)
        if length < 0:
            _raise()
        return ctypes.string_at(self._address, length)


def send(number: int, path: bytes, data: bytearray) -> int:
    """Returns how many bytes went out; BlockingIOError when none would."""
    sent = use_ours(number, path, _send, bytes(data), len(data), _SEND_FLAGS)
    if sent < 0:
        _raise()
    return int(sent)


def listen(path: str, backlog: int) -> int:
    """Returns the descriptor of a new socket that listens at `path` and does not block."""
    name = os.fsencode(path)
    address = unix_address(name)
    opened, number = _remembered()
    done: deque[int] = deque(maxlen=1)
    result: Iterator[int] = map(getitem, repeat(done), repeat(-1))
    steps = zip(
        *_making_socket(opened, number),
        map(done.append, map(_bind, number, (address,), (len(address),))),
        map(_close, map({0: -1}.get, result, number)),  # what is not bound is closed
    )
    _run(steps, opened, done)
    lifted = _lift(opened[0], name)
    if use_ours(lifted, name, _libc.listen, backlog) != 0:
        code = ctypes.get_errno()
        close_ours(lifted, name)
        raise OSError(code, os.strerror(code))
    return lifted


def wake_listener(path: str) -> None:
    """Connects to `path` and hangs up at once, which wakes the thread that waits for clients."""
    address = unix_address(os.fsencode(path))
    opened, number = _remembered()
    steps = zip(
        *_making_socket(opened, number),
        map(_connect, number, (address,), (len(address),)),
        map(_close, number),
    )
    _run(steps, opened)


def unix_address(path: bytes, platform: str = sys.platform) -> bytes:
    """Builds a struct sockaddr_un; macOS has a length in its first byte."""
    length = 2 + len(path) + 1
    head = (
        struct.pack("=BB", length, socket.AF_UNIX)
        if platform == "darwin"
        else struct.pack("=H", socket.AF_UNIX)
    )
    return head + path + b"\0"


def accept(number: int, path: bytes) -> int:
    """Returns the descriptor of the next client; BlockingIOError when there is none."""
    opened, client = _remembered()
    steps = zip(
        *_checking(number, path),
        map(opened.append, map(_accept, (number,), (None,), (None,))),
        map(os.set_inheritable, client, repeat(False)),
    )
    _run(steps, opened)
    return _lift(opened[0], path)


def use_ours(number: int, path: bytes, call: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a C function with this descriptor, if that is still ours, and returns what it returns.

    The check and the call are one step of C code: nobody's Python code runs in between.
    """
    steps = zip(*_checking(number, path), starmap(call, ((number, *arguments),)))
    try:
        for step in steps:
            return step[-1]
    except KeyError:
        pass
    raise OSError(errno.EBADF, "the host has closed it")


def is_ours(number: int, path: bytes) -> bool:
    """Returns whether this descriptor is still the socket bound to `path`, or a client of it."""
    try:
        for _ in zip(*_checking(number, path)):
            return True
    except KeyError:
        pass
    return False


def close_ours(number: int, path: bytes) -> None:
    try:
        use_ours(number, path, _close)
    except OSError:
        pass  # the host has closed it, and may have opened another file there


def hang_up_ours(number: int, path: bytes) -> None:
    """Ends a listener: nobody can connect, and on Linux the thread that waits there wakes up."""
    try:
        use_ours(number, path, _libc.shutdown, socket.SHUT_RDWR)
    except OSError:
        pass  # the host has closed it


def _checking(number: int, path: bytes) -> "tuple[Iterator[Any], ...]":
    """Returns iterators; one step of each raises KeyError unless the descriptor is ours."""
    return (
        map(_memset, (_address,), (0,), (_ADDRESS_BYTES,)),
        map(setattr, (_length,), ("value",), (_ADDRESS_BYTES,)),
        map(
            getitem, ({0: None},), map(_getsockname, (number,), (_address,), (_pointer_to_length,))
        ),
        map(getitem, ({_UNIX: None},), map(attrgetter("raw"), (_family,))),
        map(getitem, ({path or None: None},), map(attrgetter("value"), (_path,))),
    )


def _remembered() -> "tuple[deque[int], Iterator[int]]":
    """Returns a one-element deque and an iterator over it, to pass a number from one C step to the
    next.
    """
    opened: deque[int] = deque(maxlen=1)
    return opened, map(getitem, repeat(opened), repeat(-1))


def _making_socket(opened: "deque[int]", number: "Iterator[int]") -> "tuple[Iterator[Any], ...]":
    """Returns iterators; one step of each, in this order, makes a socket that does not block."""
    kind = (socket.AF_UNIX, socket.SOCK_STREAM, 0)
    return (
        map(opened.append, starmap(_libc.socket, (kind,))),
        map(os.set_inheritable, number, repeat(False)),
        map(os.set_blocking, number, repeat(False)),
    )


def _run(steps: "Iterator[Any]", *results: "deque[int]") -> None:
    """Runs one step; raises the error of the first C function that has returned less than 0."""
    try:
        for _ in steps:
            break
    except KeyError:
        raise OSError(errno.EBADF, "the host has closed it") from None
    except OSError:  # of os.set_inheritable(-1)
        if all(result and result[0] >= 0 for result in results):
            raise
    if any(result and result[0] < 0 for result in results):
        _raise()


def read_file(path: bytes) -> bytes:
    """Reads the first kB of a file that can be read at once, as those of /proc."""
    memory = _ReadBuffer()
    _, length = _with_file(path, os.O_RDONLY, _read, ctypes.addressof(memory), _MAX_READ)
    if length < 0:
        raise OSError(f"cannot read {os.fsdecode(path)}")
    return memory.raw[:length]


def write_new_file(path: bytes, data: bytes) -> None:
    """Writes a new file for this user alone; small, because the host waits for it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    number, length = _with_file(path, flags, _write, data, len(data))
    if length != len(data):
        if number >= 0:  # it was new
            os.unlink(path)
        raise OSError(f"cannot write {os.fsdecode(path)}")


def replace_file(path: str, data: bytes) -> None:
    """Writes a small file for this user alone; nobody sees a part of it.

    A process that is killed meanwhile leaves a file that begins with a dot; the next write to the
    same path removes it.
    """
    folder, name = os.path.split(path)
    unfinished = os.path.join(folder, f".{name}")
    if os.path.lexists(unfinished):
        os.unlink(unfinished)
    write_new_file(os.fsencode(unfinished), data)
    try:
        os.rename(unfinished, path)
    except OSError:
        os.unlink(unfinished)
        raise


def replace_by_file(number: int, path: bytes) -> None:
    """Sends what is written to the descriptor `number` to the end of a file from now on."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    if _with_file(path, flags, _libc.dup2, number)[1] < 0:
        raise OSError(f"cannot open {os.fsdecode(path)}")


def _with_file(
    path: bytes, flags: int, use: Callable[..., int], *arguments: Any
) -> "tuple[int, int]":
    """Opens a file, uses it and closes it; returns the number it had, and what `use` returned.

    All in one step of C code that keeps the GIL: os.closerange() of another thread may close the
    number meanwhile, but that thread cannot open a file there before we are through.
    """
    opened, number = _remembered()
    mode = ctypes.c_int(0o600)
    steps = zip(
        map(opened.append, starmap(_open, ((path, flags | _CLOSED_AT_EXEC, mode),))),
        map(use, number, *map(repeat, arguments)),
        map(_close, number),
    )
    for step in steps:
        break
    return opened[0], step[1]


def _lift(number: int, path: bytes) -> int:
    """Duplicates the socket to a descriptor above 2: a daemon reopens those of the standard
    streams.
    """
    too_low = []
    while 0 <= number < 3:
        too_low.append(number)
        number = int(use_ours(number, path, _libc.dup))
    for descriptor in too_low:
        close_ours(descriptor, path)
    if number < 0:
        _raise()
    if too_low:
        use_ours(number, path, os.set_inheritable, False)
    return number


def _raise() -> None:
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code))  # becomes BlockingIOError and its like by itself
