"""Finds out whether somebody else can change a file, and whose a process is.

A file is safe if it and every folder on its path, also on the path of each link, belong to this
user or to root and nobody else can write them. Whoever cannot write any of these cannot replace
them either, so that what was checked is what is used later.
"""

import errno
import grp
import os
import pwd
import shlex
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from mpsbar.core.naming import printable
from mpsbar.language import _

_ROOT = 0
_MAX_LINKS = 40  # as Linux has it
_LONGEST_PATH = 1000
# On a Mac: members of admin may use sudo, and root is in wheel. Homebrew's folder and /Applications
# can be written by admin; whoever is in it can be root already.
_MAC_GROUPS = (0, 80)
# The first group of every account on a Mac. conda's packages bring files that it can write
# (conda#12829, conda-forge/miniforge#506): safe where this user's account is the only one.
_MAC_STAFF = 20
# Groups that the system itself defines (LSB: 0 to 99), such as Debian's staff for /usr/local.
_FIRST_GROUP_OF_PEOPLE = 100
_ACL = "system.posix_acl_access"


@dataclass(frozen=True, slots=True)
class UnsafePath:
    """One file or folder that somebody else can change."""

    path: str
    kind: Literal["owner", "group", "everybody"]
    who: str = ""  # the owner or the group, by name
    is_roots: bool = False
    is_sticky: bool = False  # as /tmp: meant to be written by everybody

    @property
    def reason(self) -> str:
        """One clause, without a full stop."""
        path = printable(self.path, _LONGEST_PATH)
        if self.kind == "owner":
            return _("{path} belongs to another user ({user})").format(path=path, user=self.who)
        if self.kind == "everybody":
            return _("{path} is writable by everyone").format(path=path)
        return _("{path} is writable by the group {group}").format(path=path, group=self.who)

    @property
    def remedy(self) -> str | None:
        """The command that removes the permission to write; None where that would be wrong."""
        if self.kind == "owner" or self.is_sticky:
            return None
        sudo = "sudo " if self.is_roots and os.geteuid() != _ROOT else ""
        return f"{sudo}chmod go-w {shlex.quote(printable(self.path, _LONGEST_PATH))}"


class NotTrustedError(PermissionError):
    """Somebody else can change a file; the text says which, who, and what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(errno.EACCES, text)

    def __str__(self) -> str:
        return str(self.strerror)


def require_safe(path: str | os.PathLike[str]) -> None:
    """Raises NotTrustedError if somebody else can change this file of mpsbar's."""
    danger = find_danger(os.fspath(path))
    if danger is not None:
        raise NotTrustedError(f"{danger.reason}; {danger.remedy or _advise(danger)}")


def require_own(path: str | os.PathLike[str]) -> None:
    """Raises NotTrustedError if a folder on the path is another user's, as with sudo.

    For what a person may have opened to a group, as ~/.config: only root must not trust that.
    """
    danger = find_danger(os.fspath(path))
    if danger is not None and (danger.kind == "owner" or os.geteuid() == _ROOT):
        raise NotTrustedError(f"{danger.reason}; {danger.remedy or _advise(danger)}")


def _advise(danger: UnsafePath) -> str:
    if danger.kind != "owner":
        return _("choose a folder of your own")
    if os.geteuid() == _ROOT:
        return _("run mpsbar as {user}, or with sudo -H").format(user=danger.who)
    return _("move it, or choose a folder of your own")


def find_danger(path: str) -> UnsafePath | None:
    """The first file or folder on the path that somebody else can change.

    What does not exist is no danger, unless somebody else could make it. Raises OSError if the path
    cannot be followed.
    """
    homes = _find_homes()
    danger: UnsafePath | None = None
    try:
        for step, status, is_last in _walk(path):
            # As OpenSSH does it, what lies above the home folder is not judged: whoever can change
            # that can change this user's start-up files anyway.
            if danger is not None and step in homes:
                is_above = step.startswith(danger.path.rstrip("/") + "/")
                danger = None if is_above else danger
            danger = danger or _judge(step, status, is_last)
            if danger is not None and stat.S_ISLNK(status.st_mode):
                return danger  # the rest of the path is elsewhere
    except OSError:
        if danger is None:
            raise
    return danger


def _walk(path: str) -> Iterator[tuple[str, os.stat_result, bool]]:
    """Each folder, link and file that the kernel passes, and whether nothing comes after it."""
    here, links = "/", 0
    if not path.startswith("/"):
        path = os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118 - texts, all of these
    waiting = _split(path)
    yield here, os.lstat(here), not waiting
    while waiting:
        name = waiting.pop(0)
        if name == "..":
            here = os.path.dirname(here)  # noqa: PTH120 - `here` holds no link
            continue
        step = os.path.join(here, name)  # noqa: PTH118
        try:
            status = os.lstat(step)
        except (FileNotFoundError, NotADirectoryError):
            # It can still be made by whoever can write its folder, also with the sticky bit.
            yield here, os.lstat(here), True
            return
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            target = os.readlink(step)  # noqa: PTH115
            yield step, status, False
            here, waiting = "/" if target.startswith("/") else here, _split(target) + waiting
            continue
        here = step
        yield step, status, not waiting


def _split(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _judge(path: str, status: os.stat_result, is_last: bool) -> UnsafePath | None:
    if status.st_uid not in (_ROOT, os.geteuid()):
        return UnsafePath(path, "owner", _user_name(status.st_uid))
    if stat.S_ISLNK(status.st_mode):
        return None  # the mode of a link means nothing
    if status.st_mode & stat.S_ISVTX and stat.S_ISDIR(status.st_mode) and not is_last:
        # In /tmp anybody can make files, and exchange only their own; the next step is this user's
        # or root's, or it is refused.
        return None
    flags = (status.st_uid == _ROOT, bool(status.st_mode & stat.S_ISVTX))
    if status.st_mode & stat.S_IWOTH:
        return UnsafePath(path, "everybody", "", *flags)
    if status.st_mode & stat.S_IWGRP and not _is_group_safe(path, status):
        return UnsafePath(path, "group", _group_name(status.st_gid), *flags)
    return None


def _is_group_safe(path: str, status: os.stat_result) -> bool:
    """Returns whether the group has no members but this user and root."""
    if sys.platform == "darwin":
        is_staff = status.st_gid == _MAC_STAFF
        return status.st_gid in _MAC_GROUPS or (is_staff and _has_no_others(status))
    return _has_no_others(status) and not _has_acl(path)


def _has_no_others(status: os.stat_result) -> bool:
    """Many Linux systems give each user a group of the same name, which can write all their files.

    A directory service may not list whose first group it is: only a group that is named as its
    user, or that the system itself defines, is believed to have no other members.
    """
    try:
        group, owner = grp.getgrgid(status.st_gid), pwd.getpwuid(status.st_uid)
    except KeyError:
        return False
    is_own = owner.pw_gid == group.gr_gid and owner.pw_name == group.gr_name
    if not is_own and group.gr_gid >= _FIRST_GROUP_OF_PEOPLE:
        return False
    trusted = (_ROOT, os.geteuid())
    first = {user.pw_uid for user in pwd.getpwall() if user.pw_gid == group.gr_gid}
    return first.issubset(trusted) and all(_user_number(name) in trusted for name in group.gr_mem)


def _has_acl(path: str) -> bool:
    """With an ACL the group's bits are the most that anybody named in it may do."""
    if sys.platform != "linux":
        return False
    try:
        os.getxattr(path, _ACL)
    except OSError as error:
        return error.errno not in (errno.ENODATA, errno.ENOTSUP)
    return True


def _find_homes() -> tuple[str, ...]:
    """This user's home by the password database, never by $HOME, which sudo may keep."""
    try:
        home = pwd.getpwuid(os.geteuid()).pw_dir.rstrip("/")
    except KeyError:
        return ()
    return (home, os.path.realpath(home)) if home.startswith("/") else ()


def _user_name(number: int) -> str:
    try:
        return printable(pwd.getpwuid(number).pw_name, 100)
    except KeyError:
        return str(number)


def _user_number(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def _group_name(number: int) -> str:
    try:
        return printable(grp.getgrgid(number).gr_name, 100)
    except KeyError:
        return str(number)


def is_running(pid: int) -> bool:
    """Returns whether a process of this user has this pid; a zombie has it too."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):  # none, or another user's
        return False
    return True


class ProcessOwner(NamedTuple):
    is_current_user: bool
    name: str | None  # None: the system does not say


def find_owner(pid: int) -> ProcessOwner | None:
    """Returns whose process this is; None if there is none."""
    import psutil  # here: importing it takes a tenth of the time of `mpsbar status`

    try:
        process = psutil.Process(pid)
        return ProcessOwner(process.uids().real == os.getuid(), process.username())
    except psutil.AccessDenied:
        return ProcessOwner(False, None)
    except (psutil.Error, FileNotFoundError):  # the latter: it ended, and its pid is in use again
        return None
