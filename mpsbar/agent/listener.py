"""The Unix socket that an agent listens on: bound in a folder of this user, for this user alone."""

import _socket
import os
import sys
from typing import Optional

from . import gil_io, peer, user_folders

_SO_NOSIGPIPE = 0x1022


class Listener:
    """A bound Unix socket: its descriptor, its file and what identifies both."""

    def __init__(self, number: int, bound: bytes, path: str) -> None:
        self.number = number
        self.bound = bound  # what the kernel says it is bound to: the name before it was renamed
        self.path = path
        self.identity = _identify(path)

    def file_is_ours(self) -> bool:
        try:
            return _identify(self.path) == self.identity
        except OSError:
            return False

    def remove_file(self) -> None:
        if self.file_is_ours():
            try:
                os.unlink(self.path)
            except OSError:
                pass


def bind(directories: "list[str]", backlog: int) -> Listener:
    """Returns a listening socket in the first run directory that is safe and works."""
    problem: Optional[OSError] = None
    for directory in directories:
        try:
            path = user_folders.socket_path(directory, os.getpid())
            user_folders.prepare(directory)
            return _listen(path, backlog)
        except OSError as error:
            problem = error
    raise problem or OSError("no run directory")


def _listen(path: str, backlog: int) -> Listener:
    unfinished = path[: -len("sock")] + "new"  # its name is there once it can be talked to
    if os.path.lexists(unfinished):
        os.unlink(unfinished)
    number = gil_io.listen(unfinished, backlog)
    try:
        os.chmod(unfinished, 0o600)
        os.rename(unfinished, path)  # over what an earlier process with this pid left
        return Listener(number, os.fsencode(unfinished), path)
    except OSError:
        gil_io.close_ours(number, os.fsencode(unfinished))
        raise


def is_same_user(number: int) -> bool:
    """Returns whether the client at this descriptor is a process of this user, by the kernel."""
    link = _socket.socket(fileno=number)
    try:
        if sys.platform == "darwin":
            link.setsockopt(_socket.SOL_SOCKET, _SO_NOSIGPIPE, 1)
        return peer.read_uid(link) == os.geteuid()
    except OSError:
        return False
    finally:
        link.detach()  # the number stays open


def _identify(path: str) -> "tuple[int, int]":
    status = os.lstat(path)
    return status.st_dev, status.st_ino
