"""The agent: one daemon thread that answers this user's monitors on a Unix socket."""

import errno
import os
import selectors
import socket
import sys
import threading
import time
from typing import Any, Callable, Optional

from . import places, protocol
from .protocol import Message

IDLE_SECONDS = 60.0
CHECK_SECONDS = 30.0
STEP_SECONDS = 0.002
MOST_CONNECTIONS = 64
# Each round of answers makes the host's thread wait for the GIL once (make bench, training): in the
# long run so many a second, whoever asks how often; a person's few clicks are never slowed.
ROUNDS_PER_SECOND = 10.0
ROUNDS_AT_ONCE = 10.0
MOST_UNREAD = 4 * protocol.MAX_LINE
_SO_NOSIGPIPE = 0x1022


# Held while the agent's thread imports, and by life while the host forks: a child forked in the
# middle of an import could never import that module itself.
loading = threading.Lock()


class Connection:
    """One client: what it sent and has not ended with a line yet, and what it has not read yet."""

    def __init__(self, link: socket.socket, now: float) -> None:
        self.link = link
        self.unparsed = bytearray()
        self.unread = bytearray()
        self.last_heard = now
        self.waiting = 0  # answers still to come
        self.ended = False  # nothing more will be read


class Job:
    """A free or a tensors under way, and who wants to know."""

    def __init__(self, method: str, work: Any) -> None:
        self.method = method
        self.work = work
        self.asked: list[tuple[Connection, Any]] = []


class Agent:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.path, self._listener, self._identity = _bind()
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        self._connections: dict[int, Connection] = {}
        self._jobs: list[Job] = []
        self._stopping = False
        self._next_check = time.monotonic() + CHECK_SECONDS
        self._rounds = ROUNDS_AT_ONCE
        self._last_round = time.monotonic()
        self._told = False  # in this round, to somebody who only looks
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._run, name="mpsbar-agent", daemon=True)

    def start(self) -> None:
        try:
            self._thread.start()
        except RuntimeError:
            self._remove_file()
            self.close()
            raise

    def is_alive(self) -> bool:
        return self.pid == os.getpid() and self._thread.is_alive()

    def stop(self) -> None:
        """At exit. Joined: a thread inside torch while Python ends can bring the process down."""
        if self.pid != os.getpid():
            return
        self._stopping = True
        self._remove_file()
        try:
            os.write(self._wake_write, b"x")
        except OSError:
            pass
        if self._thread is not threading.current_thread():
            self._thread.join(1.0)

    def close(self) -> None:
        """Every descriptor, in a process where the thread does not run: a forked child has none."""
        self._selector.close()
        for number in (self._wake_read, self._wake_write):
            os.close(number)
        for connection in self._connections.values():
            connection.link.close()
        self._listener.close()

    # ------------------------------------------------------------------------ the loop
    def _run(self) -> None:
        while not self._stopping:
            try:
                self._turn_once()
            except Exception:  # noqa: BLE001 - never into the host's threading.excepthook
                if self._stopping or sys.is_finalizing():
                    return
                time.sleep(0.1)

    def _turn_once(self) -> None:
        self._told = False
        for key, _ in self._selector.select(self._patience()):
            if key.data is not None:
                self._guard(key.data, self._serve)
            elif key.fileobj is self._listener:
                self._accept()
        if self._jobs:
            self._step_job()
        now = time.monotonic()
        if self._told and not self._jobs:
            self._pace(now)
        if now >= self._next_check:
            self._next_check = now + CHECK_SECONDS
            self._keep_house(now)

    def _pace(self, now: float) -> None:
        """Let requests gather when they come too often; the next round answers them all."""
        earned = (now - self._last_round) * ROUNDS_PER_SECOND
        self._rounds = min(ROUNDS_AT_ONCE, self._rounds + earned) - 1.0
        self._last_round = now
        if self._rounds < 0:
            time.sleep(-self._rounds / ROUNDS_PER_SECOND)

    def _patience(self) -> float:
        if self._jobs:
            return STEP_SECONDS
        return max(0.0, self._next_check - time.monotonic())

    def _guard(self, connection: Connection, action: Callable[[Connection], None]) -> None:
        try:
            action(connection)
        except (OSError, protocol.ProtocolError):
            self._drop(connection)

    def _accept(self) -> None:
        try:
            link, _ = self._listener.accept()
        except OSError as problem:
            if problem.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                time.sleep(0.05)  # the host is out of descriptors: do not spin on the listener
            return
        try:
            link.setblocking(False)
            if (
                _tools().peer.read_uid(link) != os.geteuid()
                or len(self._connections) >= MOST_CONNECTIONS
            ):
                raise PermissionError
            if sys.platform == "darwin":
                link.setsockopt(socket.SOL_SOCKET, _SO_NOSIGPIPE, 1)
            connection = Connection(link, time.monotonic())
            self._selector.register(link, selectors.EVENT_READ, connection)
            self._connections[link.fileno()] = connection
        except OSError:
            link.close()

    def _serve(self, connection: Connection) -> None:
        if not connection.ended:
            self._receive(connection)
        self._send(connection)

    def _receive(self, connection: Connection) -> None:
        try:
            data = _tools().buffer.receive(connection.link.fileno())
        except (BlockingIOError, InterruptedError):
            return
        if not data:
            connection.ended = True
            return
        connection.last_heard = time.monotonic()
        connection.unparsed += data
        for line in protocol.split_lines(connection.unparsed):
            if connection.ended:
                break
            self._answer(connection, line)

    def _answer(self, connection: Connection, line: bytes) -> None:
        try:
            number, method, params = protocol.parse_request(line)
        except protocol.ProtocolError as problem:
            # Garbage: say so, and listen no more.
            connection.unread += protocol.error(None, problem.code, str(problem))
            connection.ended = True
            return
        if method in ("free", "tensors"):
            self._ask_job(connection, number, method, params)
        elif method == "stats":
            self._told = True
            connection.unread += protocol.result(number, _tools().answers.describe(params))
        elif method == "hello":
            self._told = True
            connection.unread += protocol.result(number, _tools().answers.introduce())
        else:
            text = f"no method {method[:40]!r}"
            connection.unread += protocol.error(number, protocol.METHOD_NOT_FOUND, text)

    def _send(self, connection: Connection) -> None:
        if connection.unread:
            try:
                del connection.unread[
                    : _tools().held.send(connection.link.fileno(), connection.unread)
                ]
            except (BlockingIOError, InterruptedError):
                pass
        if len(connection.unread) > MOST_UNREAD:
            raise OSError("the client does not read")
        if connection.ended and not connection.unread and not connection.waiting:
            raise OSError("all is said")
        self._watch(connection)

    def _watch(self, connection: Connection) -> None:
        events = 0 if connection.ended else selectors.EVENT_READ
        if connection.unread:
            events |= selectors.EVENT_WRITE
        known = self._selector.get_map().get(connection.link.fileno())
        if known is None and events:
            self._selector.register(connection.link, events, connection)
        elif known is not None and not events:
            self._selector.unregister(connection.link)
        elif known is not None and known.events != events:
            self._selector.modify(connection.link, events, connection)

    def _drop(self, connection: Connection) -> None:
        number = connection.link.fileno()
        self._connections.pop(number, None)
        if number >= 0 and number in self._selector.get_map():
            self._selector.unregister(connection.link)
        connection.link.close()
        connection.ended = True

    # ------------------------------------------------------------------- free, tensors
    def _ask_job(self, connection: Connection, number: Any, method: str, params: Message) -> None:
        for job in self._jobs:
            if job.method == method:
                break
        else:
            job = Job(method, _tools().answers.start(method, params))
            self._jobs.append(job)
        job.asked.append((connection, number))
        connection.waiting += 1

    def _step_job(self) -> None:
        """One at a time: two could be in each other's way on main."""
        job = self._jobs[0]
        try:
            answer = job.work.step()
        except Exception as problem:  # noqa: BLE001 - the client is told
            answer = {"state": "failed", "error": str(problem)[:300]}
        if answer is None:
            return
        self._jobs.remove(job)
        for connection, number in job.asked:
            connection.waiting -= 1
            if connection.link.fileno() >= 0:
                connection.unread += protocol.result(number, answer)
                self._guard(connection, self._send)

    # -------------------------------------------------------------------- housekeeping
    def _keep_house(self, now: float) -> None:
        for connection in list(self._connections.values()):
            if now - connection.last_heard > IDLE_SECONDS and not connection.waiting:
                self._drop(connection)
        if not self._file_is_ours():
            self._bind_again()

    def _file_is_ours(self) -> bool:
        try:
            return _identify(self.path) == self._identity
        except OSError:
            return False

    def _bind_again(self) -> None:
        """macOS reaps temporary places, and people delete directories."""
        try:
            path, listener, identity = _bind()
        except OSError:
            return  # at the next check
        self._selector.unregister(self._listener)
        self._listener.close()
        self.path, self._listener, self._identity = path, listener, identity
        self._selector.register(listener, selectors.EVENT_READ, None)

    def _remove_file(self) -> None:
        if self._file_is_ours():
            try:
                os.unlink(self.path)
            except OSError:
                pass


def _tools() -> "type[_Tools]":
    """All else the agent needs, loaded with its first client: attach() costs next to nothing."""
    if _Tools.buffer is None:
        with loading:
            from . import answers, backends, held, notebook, peer, release, tensors  # noqa: F401

            backends.every()
            _Tools.answers, _Tools.held, _Tools.peer = answers, held, peer
            _Tools.buffer = held.Buffer()
    return _Tools


class _Tools:
    answers: Any = None
    held: Any = None
    peer: Any = None
    buffer: Any = None


def _bind() -> "tuple[str, socket.socket, tuple[int, int]]":
    """A listening socket in the first run directory that is safe and works."""
    problem: Optional[OSError] = None
    for directory in places.candidates():
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            path = places.socket_path(directory, os.getpid())
            places.prepare(directory)
            unfinished = path[: -len("sock")] + "new"  # its name is there once it can be talked to
            if os.path.lexists(unfinished):
                os.unlink(unfinished)
            listener.bind(unfinished)
            os.chmod(unfinished, 0o600)
            listener.listen(MOST_CONNECTIONS)
            listener.setblocking(False)
            os.rename(unfinished, path)  # over what an earlier process with this pid left
            return path, listener, _identify(path)
        except OSError as error:
            listener.close()
            problem = error
    raise problem or OSError("no run directory")


def _identify(path: str) -> "tuple[int, int]":
    status = os.lstat(path)
    return status.st_dev, status.st_ino
