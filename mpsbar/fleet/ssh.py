"""Runs mpsbar on another host over the user's own ssh: builds the command, reads its output."""

import contextlib
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mpsbar.core.addresses import is_host_name
from mpsbar.core.errors import UserError
from mpsbar.core.naming import printable
from mpsbar.language import _

# Where a tool install and the app put mpsbar; the PATH of a non-interactive shell may lack them.
_PLACES = "$HOME/.local/bin:/opt/homebrew/bin:/usr/local/bin"
_APP = "/Applications/mpsbar.app/Contents/Resources/bin"
# For every connection: nothing that the user's configuration forwards is forwarded, and a
# connection that has died is noticed within a minute.
COMMON_OPTIONS = (
    "-T", "-oConnectTimeout=10", "-oServerAliveInterval=15", "-oServerAliveCountMax=3",
    "-oRemoteCommand=none", "-oClearAllForwardings=yes", "-oForwardAgent=no", "-oForwardX11=no",
)  # fmt: skip
# For a command: ssh asks nothing, and prints nothing of its own but errors.
_COMMAND_OPTIONS = ("-oBatchMode=yes", "-oEscapeChar=none", "-oLogLevel=ERROR")
_CHUNK = 64 * 1024
# poll() needs no descriptor of its own: a shell on a Mac allows 256, and each host takes two.
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)
# 1,000 workers take about a third of it.
MAX_LINE = 4 << 20
_MAX_COMPLAINT = 4096
# The pause after each full chunk: TCP then slows down a host that sends without end.
_CHUNK_SECONDS = 0.02


class OutputTooLongError(Exception):
    """A host sent a line that is longer than any answer."""


def check_host(host: str) -> str:
    if not is_host_name(host):
        raise UserError(_("{host!r} is not the name of a host").format(host=printable(host, 60)))
    return host


def find_ssh() -> str:
    program = shutil.which("ssh")
    if program is None:
        raise UserError(_("ssh is not installed here"))
    return program


def split_options(options: str) -> list[str]:
    """Splits the user's options for ssh into words. Raises UserError if that is not possible."""
    try:
        return shlex.split(options)
    except ValueError as problem:
        raise UserError(_("--ssh is not valid: {problem}").format(problem=problem)) from None


def build_command(
    host: str, arguments: Sequence[str], options: str = "", socket: Path | None = None
) -> list[str]:
    """Builds the ssh command that runs mpsbar with `arguments` on the host.

    `socket` is that of an open connection to use; None: ssh connects as the user has configured it.
    Raises UserError if there is no ssh or the host's name is wrong.
    """
    # Its errors are searched for known texts here, so it must print them in English.
    variables = f'PATH="$PATH:{_PLACES}:{_APP}"; MPSBAR_LANG=en; export PATH MPSBAR_LANG'
    script = f"{variables}; exec mpsbar {shlex.join(arguments)}"
    # The login shell may be any, so it only runs sh. ssh takes the first value of an option, so the
    # user's own options precede ours; of -S it takes the last.
    own = split_options(options)
    if socket is not None:
        own = ["-oControlMaster=no", *own, "-S", str(socket)]
    return [
        find_ssh(), *own, *COMMON_OPTIONS, *_COMMAND_OPTIONS, "--", check_host(host),
        f"sh -c {shlex.quote(script)}",
    ]  # fmt: skip


class RemoteCommand:
    """One ssh process. Its lines have a maximum length; of stderr only the end is kept."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C does not reach ssh, and a ProxyCommand ends with it.
            start_new_session=True,
        )
        self._complaint = bytearray()
        self._listener = threading.Thread(target=self._listen, name="mpsbar-ssh", daemon=True)
        self._listener.start()

    def read_lines(
        self, longest: float | None = None, on_silence: Callable[[], None] = lambda: None
    ) -> Iterator[bytes]:
        """Yields lines until the end. Raises OutputTooLongError if one is too long.

        `on_silence` is called if nothing came for `longest` seconds; None: never.
        """
        assert self._process.stdout is not None
        pending = bytearray()
        ready = _Selector()
        ready.register(self._process.stdout, selectors.EVENT_READ)
        while True:
            if longest is not None and not ready.select(longest):
                on_silence()
                continue
            chunk = os.read(self._process.stdout.fileno(), _CHUNK)
            if not chunk:
                break
            pending += chunk
            *lines, rest = pending.split(b"\n")
            yield from (bytes(line) for line in lines)
            pending = rest
            if len(pending) > MAX_LINE:
                raise OutputTooLongError
            if len(chunk) == _CHUNK:
                time.sleep(_CHUNK_SECONDS)
        if pending:
            yield bytes(pending)

    def wait(self) -> int:
        """Returns the exit code: 255 is ssh's own failure, 127 a host without mpsbar."""
        self._listener.join(5.0)
        try:
            return self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            return -1

    @property
    def complaint(self) -> str:
        """The last line of stderr, safe to show."""
        lines = bytes(self._complaint).decode("utf-8", "replace").split("\n")
        written = [line.strip() for line in lines if line.strip()]
        return printable(written[-1], 200) if written else ""

    def end(self) -> None:
        """Ends ssh and what it started, such as a ProxyCommand."""
        if self._process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _listen(self) -> None:
        assert self._process.stderr is not None
        while chunk := os.read(self._process.stderr.fileno(), 4096):
            self._complaint += chunk
            del self._complaint[:-_MAX_COMPLAINT]
            if len(chunk) == 4096:
                time.sleep(_CHUNK_SECONDS)
