"""recv and send that keep the GIL.

Python gives the GIL away around each call on a socket. In a busy host that is worth three turns of
waiting for every poll, and each makes the host's own thread wait too; on a non-blocking socket the
call itself takes a few microseconds (figures: make bench, training).
"""

import ctypes
import os
import socket

# The host may have given SIGPIPE its deadly default back; on macOS a socket option says the same.
_SEND_FLAGS = getattr(socket, "MSG_NOSIGNAL", 0) | socket.MSG_DONTWAIT
_SIZE = 8 * 1024  # requests are short; what is longer comes in pieces

_libc = ctypes.PyDLL(None, use_errno=True)
_recv, _send = _libc.recv, _libc.send
for _call in (_recv, _send):
    _call.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    _call.restype = ctypes.c_ssize_t


class Buffer:
    """Where received bytes land; one for a thread."""

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(_SIZE)
        self._address = ctypes.addressof(self._memory)

    def receive(self, number: int) -> bytes:
        """What has arrived, b"" at the end; BlockingIOError when there is nothing yet."""
        length = _recv(number, self._address, _SIZE, socket.MSG_DONTWAIT)
        if length < 0:
            _raise()
        return ctypes.string_at(self._address, length)


def send(number: int, data: bytearray) -> int:
    """How many bytes went out; BlockingIOError when none would."""
    memory = (ctypes.c_char * len(data)).from_buffer(data)
    sent = _send(number, ctypes.addressof(memory), len(data), _SEND_FLAGS)
    del memory  # a bytearray cannot shrink while it is looked at
    if sent < 0:
        _raise()
    return int(sent)


def _raise() -> None:
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code))  # becomes BlockingIOError and its like by itself
