"""Lets ssh ask a person for a password, a passphrase or whether a host's key is right.

ssh itself asks, on the terminal, one host after another. The connection then stays open in the
background as ssh's own master (ControlMaster), and the following commands use it without a
question. It ends when this command ends, or two minutes after its last use.
"""

import contextlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from mpsbar.core.errors import UserError
from mpsbar.fleet.ssh import COMMON_OPTIONS, find_ssh, split_options

# Longer than the longest pause between two attempts (hosts.py).
_PERSIST_SECONDS = 120
_EXIT_SECONDS = 5.0
# The path of a socket may have 103 bytes on a Mac, and ssh adds 17 while it creates it: the path of
# the user's own temporary folder would be too long there.
_PLACE = "/tmp"  # noqa: S108 - we make a folder in it that no other user can enter


class Questions:
    """Opens connections for which ssh may ask a person; `close` ends them."""

    def __init__(self, options: str) -> None:
        self._options = options
        self._folder: Path | None = None
        # Every connection that was tried: ssh may leave one open even if its command has failed.
        self._tried: list[tuple[str, Path]] = []
        self._sockets: dict[str, Path] = {}

    def ask(self, host: str) -> bool:
        """Lets ssh ask on the terminal. Returns whether a connection to this host was opened."""
        path = self._make_folder() / str(len(self._tried))
        self._tried.append((host, path))
        done = subprocess.run(
            [
                # These precede the user's options, because ssh takes the first value of an
                # option. Of -S, which overrides ControlPath, it takes the last.
                find_ssh(), "-oControlMaster=yes", f"-oControlPersist={_PERSIST_SECONDS}",
                *split_options(self._options), "-S", str(path), *COMMON_OPTIONS,
                "--", host, "true",
            ],
            check=False,
        )  # fmt: skip
        # The exit code of `true` there does not matter, but 255 is a failure of ssh itself.
        if done.returncode == 255 or not path.exists():
            self._end(host, path)
            return False
        self._sockets[host] = path
        return True

    def socket_of(self, host: str) -> Path | None:
        """Returns the socket of the open connection, or None if there is none."""
        return self._sockets.get(host)

    def close(self) -> None:
        for host, path in self._tried:
            self._end(host, path)
        self._tried.clear()
        self._sockets.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _end(self, host: str, path: Path) -> None:
        if not path.exists():
            return
        with contextlib.suppress(OSError, subprocess.TimeoutExpired, UserError):
            subprocess.run(
                [
                    find_ssh(), *split_options(self._options), "-S", str(path),
                    "-Oexit", "--", host,
                ],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=_EXIT_SECONDS,
                check=False,
            )  # fmt: skip

    def _make_folder(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="mpsbar-ssh-", dir=_PLACE))
        return self._folder
