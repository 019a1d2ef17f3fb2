"""The folders of this user for the sockets of workers and the results of probes.

Decided from the password database and the file system, never from $HOME, $TMPDIR or $XDG_*: those
differ between a training run and the app that watches it.
"""

import os
import pwd
import re
import socket
import stat
import sys
from typing import Optional

# sun_path is 104 bytes on macOS, with the NUL.
MAX_PATH = 103
# pid_t; no kernel gives numbers this high.
MAX_PID = 2**31 - 1
# By user, asked once: on macOS the password database is another process, reached by a connection
# that a forked child must not use.
_homes: "dict[int, str]" = {}


def find_run_folders() -> "list[str]":
    """Returns socket folders, best first: the agent binds in the first safe one, the client lists
    all.
    """
    override = os.environ.get("MPSBAR_RUN_DIR")
    if override:
        return [os.path.abspath(override)]
    folders = []
    home = _home()
    if home:
        folders.append(os.path.join(home, *_below_home("run")))
    folders.append(f"{_shared_temporary()}/mpsbar-{os.geteuid()}")
    return folders


def prepare(directory: str) -> None:
    """Makes `directory` for this user alone; OSError says why it cannot be used.

    One that was there before is judged and never changed: it may be the user's own, or /tmp.
    """
    make_folders(directory)
    check(directory)


def make_folders(folder: str) -> None:
    """Makes `folder` and what is missing above it for this user alone, whatever the umask.

    What was there before is not changed. os.makedirs and Path.mkdir give the folders above the last
    the rights that the umask leaves: with 0 everybody could write them.
    """
    missing, folder = [], os.path.abspath(folder)
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            continue  # somebody else was faster
        if os.lstat(path).st_mode & 0o700 != 0o700:
            os.chmod(path, 0o700)  # the umask took this user's own rights away


def check(directory: str) -> None:
    """Raises OSError unless `directory` is a real directory that this user alone may write."""
    status = os.lstat(directory)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{directory} is not a directory: choose another folder")
    if status.st_uid != os.geteuid():
        raise PermissionError(f"{directory} belongs to another user: choose a folder of your own")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        advice = "choose a folder of your own"
        if not status.st_mode & stat.S_ISVTX:  # /tmp is to stay as it is
            advice += ", or remove that permission with chmod go-w"
        raise PermissionError(f"{directory} is writable by other users: {advice}")


def socket_path(directory: str, pid: int) -> str:
    """Returns the path of one worker's socket; OSError where the kernel could not hold it."""
    path = os.path.join(directory, f"{pid}.sock")
    if len(os.fsencode(path)) > MAX_PATH:
        raise OSError(f"the socket path is longer than {MAX_PATH} bytes: {path}")
    return path


def list_sockets(directories: "Optional[list[str]]" = None) -> "list[tuple[int, str]]":
    """Returns (pid, path) of every socket file; a directory that is not safely ours is not looked
    at.
    """
    sockets = []
    for directory in find_run_folders() if directories is None else directories:
        try:
            sockets += list_directory(directory)
        except OSError:
            continue
    return sorted(sockets)


def list_directory(directory: str) -> "list[tuple[int, str]]":
    """Does the same for one directory; OSError if it is not safely ours or cannot be listed now."""
    check(directory)
    sockets = []
    for name in os.listdir(directory):
        match = re.fullmatch(r"([1-9]\d{0,9})\.sock", name)
        if match and int(match.group(1)) <= MAX_PID:
            sockets.append((int(match.group(1)), os.path.join(directory, name)))
    return sockets


def results_folder() -> "Optional[str]":
    """Returns where the dtype probe keeps what it measured, or None where this user has no home."""
    override = os.environ.get("MPSBAR_DATA_DIR")
    if override:
        return os.path.join(os.path.abspath(override), "probes")
    home = _home()
    return os.path.join(home, *_below_home("probes")) if home else None


def result_name(device: str, torch: str, system: str, prefix: str, version: str) -> str:
    """Names a result's file: another torch, system or interpreter has one of its own."""
    import hashlib

    everything = "\0".join((device, torch, system, prefix, version))
    digest = hashlib.sha256(everything.encode("utf-8", "replace")).hexdigest()[:12]
    return f"{_plain(device)}-torch-{_plain(torch)}-{_plain(system)}-{digest}.json"


def system_version() -> str:
    """Returns 15.1; on Linux the kernel's."""
    import platform  # which torch has imported long ago

    return platform.mac_ver()[0] or platform.release()


def _home() -> str:
    user = os.geteuid()
    home = _homes.get(user)
    if home is None:
        try:
            home = pwd.getpwuid(user).pw_dir
        except KeyError:
            return ""
        _homes[user] = home
    return home if os.path.isabs(home) and os.path.isdir(home) else ""


def _below_home(name: str) -> "list[str]":
    if sys.platform == "darwin":
        return ["Library", "Application Support", "mpsbar", name]
    # Homes may be shared between hosts, sockets and GPUs are not.
    return [".local", "state", "mpsbar", f"{name}-{_plain(socket.gethostname()) or 'localhost'}"]


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "_", text)[:40]


def _shared_temporary() -> str:
    return "/private/tmp" if sys.platform == "darwin" else "/tmp"  # noqa: S108 - checked by prepare()


_home()  # when this is imported: before a fork, in all but the oddest of hosts
