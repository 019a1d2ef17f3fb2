"""Tells which user is at the other end of a Unix socket, by the kernel's credentials."""

import _socket
import socket
import struct
import sys
from typing import Optional

# macOS, from sys/un.h and sys/ucred.h; Python's socket module does not have them all.
_SOL_LOCAL, _LOCAL_PEERCRED, _LOCAL_PEERPID = 0, 1, 2
_XUCRED = struct.Struct("=IIh2x16I")
_UCRED = struct.Struct("=iII")


def parse_xucred(raw: bytes) -> int:
    """Returns the uid in macOS's struct xucred."""
    version, uid = _XUCRED.unpack(raw)[:2]
    if version != 0:
        raise OSError(f"unknown version {version} of struct xucred")
    return int(uid)


def parse_ucred(raw: bytes) -> int:
    """Returns the uid in Linux's struct ucred."""
    return int(_UCRED.unpack(raw)[1])


def read_uid(connection: _socket.socket) -> int:
    """Returns the effective user id of the other end; OSError if the kernel does not say."""
    if sys.platform == "darwin":
        return parse_xucred(connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED.size))
    return parse_ucred(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))


def read_pid(connection: _socket.socket) -> "Optional[int]":
    """Returns the process at the other end; None where the kernel does not say, or cannot name it
    here.
    """
    try:
        if sys.platform == "darwin":
            pid = int(connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID))
        else:
            raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
            pid = int(_UCRED.unpack(raw)[0])
    except OSError:
        return None
    return pid if pid > 0 else None
