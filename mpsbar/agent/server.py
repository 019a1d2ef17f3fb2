"""The agent: one daemon thread that answers this user's monitors on a Unix socket."""

import _socket
import errno
import os
import sys
import time
from typing import Any, Callable, Optional

from . import gil_io, kept_free, main_thread, methods, peer, places, protocol
from .agent_thread import AgentThread
from .gc_pause import CollectorPause
from .pacing import TOO_OFTEN, Allowance, JobPace
from .protocol import Message

IDLE_SECONDS = 60.0
CHECK_SECONDS = 30.0
BIND_AGAIN_SECONDS = 1.0
STEP_SECONDS = 0.002
MOST_CONNECTIONS = 64
ACCEPTED_AT_ONCE = 16
MOST_WAITING = 100  # answers that one connection may wait for
MOST_JOBS = 8  # each limit that is asked for is a job of its own
# Each round of answers makes the host's thread wait for the GIL once (make bench, training): in the
# long run so many a second, whoever asks how often; a person's few clicks are never slowed.
ROUNDS_PER_SECOND = 10.0
ROUNDS_AT_ONCE = 10.0
# A round in which clients only came or went does less.
QUIET_ROUND = 0.25
# Longer than this, and the host would run without collections whenever it gets the GIL from us.
AT_A_STRETCH_SECONDS = 0.001
MOST_UNREAD = 4 * protocol.MAX_LINE
_SO_NOSIGPIPE = 0x1022


class Connection:
    """One client: what it sent and has not ended with a line yet, and what it has not read yet."""

    def __init__(self, number: int, path: bytes, now: float) -> None:
        self.number = number  # of its descriptor
        self.path = path  # what its listener was bound to
        self.unparsed = bytearray()
        self.unread = bytearray()
        self.last_heard = now
        self.waiting = 0  # answers still to come
        self.results: list[tuple[Any, Message]] = []  # of jobs, about to be sent
        self.ended = False  # nothing more will be read
        self.dropped = False


class Job:
    """A free, tensors or limit under way, and who wants to know."""

    def __init__(self, identity: "tuple[str, Optional[int]]", work: Any) -> None:
        self.identity = identity
        self.method = identity[0]
        self.work = work
        self.asked: list[tuple[Connection, Any]] = []


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


class Agent:
    """One daemon thread. Its Python code runs with the collector paused, see gc_pause."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._directories = places.candidates()
        self._listener = _bind(self._directories)
        self._pause = CollectorPause()
        self._buffer = gil_io.ReceiveBuffer()
        self._polled = (gil_io.PollEntry * (MOST_CONNECTIONS + 1))()
        self._connections: list[Connection] = []
        self._jobs: list[Job] = []
        self._stopping = False
        self._next_check = time.monotonic() + CHECK_SECONDS
        self._rounds = Allowance(ROUNDS_PER_SECOND, ROUNDS_AT_ONCE)
        self._hears_from = 0.0  # until then clients wait
        self._paces = {method: JobPace() for method in methods.JOBS}
        self._answered = False  # in this round, somebody
        self._woken = 0.0
        self._thread = AgentThread(self._run)

    @property
    def path(self) -> str:
        return self._listener.path

    def start(self) -> None:
        # Before the thread's first line of Python, and with it through its first wait.
        self._pause.begin()
        try:
            self._thread.start()
        except RuntimeError:
            self._pause.end()
            self._listener.remove_file()
            self.close()
            raise

    def is_alive(self) -> bool:
        return self.pid == os.getpid() and self._thread.is_alive()

    def stop(self) -> None:
        """At exit. Joined: a thread inside torch while Python ends can bring the process down."""
        if self.pid != os.getpid():
            return
        self._stopping = True
        # Not by a descriptor that is written to: it may be the host's by now.
        if self._listener.file_is_ours():
            gil_io.knock(self._listener.path)
        self._listener.remove_file()
        if not self._thread.is_current() and self._thread.join(1.0):
            self._pause.end()

    def close(self) -> None:
        """Close what is ours, where the thread does not run: a forked child has none."""
        self._pause.end()
        for connection in self._connections:
            gil_io.close_ours(connection.number, connection.path)
        gil_io.close_ours(self._listener.number, self._listener.bound)

    # ------------------------------------------------------------------------ the loop
    def _run(self) -> None:
        while not self._stopping:
            try:
                self._serve_round()
            except Exception:  # noqa: BLE001 - one bad round is not the end
                if self._stopping or sys.is_finalizing():
                    return
                self._sleep(0.1)

    def _serve_round(self) -> None:
        self._answered = False
        ready = self._wait()
        if self._stopping:
            return
        for connection in ready:
            self._guard(connection, self._serve)
        if self._polled[0].found:
            self._accept()
        if self._jobs:
            self._step_job()
        now = time.monotonic()
        self._try_kept_free(now)
        if ready or self._polled[0].found:
            self._pace(now)
        if now >= self._next_check:
            self._next_check = now + CHECK_SECONDS
            self._check(now)

    def _wait(self) -> "list[Connection]":
        """The connections that something can be done for; the listener is the first entry."""
        now = time.monotonic()
        if now < self._hears_from:
            _watch(self._polled[0], -1, 0)
            left = self._hears_from - now
            self._sleep(min(left, STEP_SECONDS) if self._jobs else left)
            return []
        seconds = STEP_SECONDS if self._jobs else self._next_time() - now
        connections = self._connections
        _watch(self._polled[0], self._listener.number, gil_io.POLLIN)
        for index, connection in enumerate(connections, 1):
            events = 0 if connection.ended else gil_io.POLLIN
            if connection.unread:
                events |= gil_io.POLLOUT
            # Without events it would be found hung up over and over.
            _watch(self._polled[index], connection.number if events else -1, events)
        arguments = gil_io.poll_arguments(self._polled, 1 + len(connections), seconds)
        count = self._pause.call(gil_io.poll, *arguments)
        self._woken = time.monotonic()
        if count <= 0:
            _watch(self._polled[0], -1, 0)
            return []
        return [each for index, each in enumerate(connections, 1) if self._polled[index].found]

    def _next_time(self) -> float:
        """When something is to be done without being asked."""
        kept = kept_free.find_kept()
        return self._next_check if kept is None else min(self._next_check, kept.next_try)

    def _sleep(self, seconds: float) -> None:
        self._pause.call(gil_io.poll, *gil_io.poll_arguments(None, 0, seconds))
        self._woken = time.monotonic()

    def _pace(self, now: float) -> None:
        """Let requests gather when they come too often; the next round answers them all."""
        self._hears_from = self._rounds.spend(1.0 if self._answered else QUIET_ROUND, now)

    def _guard(self, connection: Connection, action: Callable[[Connection], None]) -> None:
        """Do something for a connection, if its descriptor is still ours; drop it if that fails."""
        try:
            if not gil_io.is_ours(connection.number, connection.path):
                raise OSError(errno.EBADF, "the host has closed it")
            action(connection)
        except (OSError, protocol.ProtocolError):
            self._drop(connection)

    def _accept(self) -> None:
        listener = self._listener
        if not gil_io.is_ours(listener.number, listener.bound):
            # The host has closed it, and may be about to open files at the lowest numbers.
            listener.number = -1
            self._next_check = max(self._next_check, time.monotonic() + BIND_AGAIN_SECONDS)
            return
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                number = gil_io.accept(listener.number)
            except OSError as problem:
                if problem.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                    self._sleep(0.05)  # the host is out of descriptors: do not spin on the listener
                return
            self._add(number, listener.bound)

    def _add(self, number: int, path: bytes) -> None:
        for stale in [each for each in self._connections if each.number == number]:
            self._drop_record(stale)  # the host closed it, and the number came back to us
        if not _is_same_user(number):
            gil_io.close_ours(number, path)
            return
        if len(self._connections) >= MOST_CONNECTIONS:
            # Whoever keeps all of them busy must not lock the monitor out.
            self._drop(min(self._connections, key=lambda each: (each.waiting, each.last_heard)))
        self._connections.append(Connection(number, path, time.monotonic()))

    def _serve(self, connection: Connection) -> None:
        if not connection.ended:
            self._receive(connection)
        self._send(connection)

    def _receive(self, connection: Connection) -> None:
        try:
            data = self._buffer.receive(connection.number)
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
            if time.monotonic() - self._woken > AT_A_STRETCH_SECONDS:
                self._sleep(0.001)

    def _answer(self, connection: Connection, line: bytes) -> None:
        self._answered = True
        try:
            number, method, params = protocol.parse_request(line)
        except protocol.ProtocolError as problem:
            # Garbage: say so, and listen no more.
            connection.unread += protocol.error(None, problem.code, str(problem))
            connection.ended = True
            return
        if method in methods.JOBS:
            try:
                identity = methods.identify_job(method, params)
            except protocol.ProtocolError as problem:
                connection.unread += protocol.error(number, problem.code, str(problem))
                return
            self._ask_job(connection, number, identity, params)
        elif method in ("stats", "hello"):
            connection.unread += _read(number, method, params)
        else:
            text = f"no method {method[:40]!r}"
            connection.unread += protocol.error(number, protocol.METHOD_NOT_FOUND, text)

    def _send(self, connection: Connection) -> None:
        if connection.unread:
            try:
                del connection.unread[: gil_io.send(connection.number, connection.unread)]
            except (BlockingIOError, InterruptedError):
                pass
        if len(connection.unread) > MOST_UNREAD:
            raise OSError("the client does not read")
        if connection.ended and not connection.unread and not connection.waiting:
            raise OSError("all is said")

    def _drop(self, connection: Connection) -> None:
        if not connection.dropped:
            gil_io.close_ours(connection.number, connection.path)
            self._drop_record(connection)

    def _drop_record(self, connection: Connection) -> None:
        connection.ended = connection.dropped = True
        self._connections.remove(connection)

    # ------------------------------------------------------------ free, tensors, limit
    def _ask_job(
        self,
        connection: Connection,
        number: Any,
        identity: "tuple[str, Optional[int]]",
        params: Message,
    ) -> None:
        method = identity[0]
        if connection.waiting >= MOST_WAITING:
            raise OSError("the client asks without end")
        if method == "free":
            if params.get("cancel") is True:
                connection.unread += protocol.result(number, self._cancel_kept_free())
                return
            self._prepare_free(params)
        for job in self._jobs:
            if job.identity == identity:
                break
        else:
            answer = self._paces[method].find_answer(time.monotonic(), identity)
            if answer is None and len(self._jobs) >= MOST_JOBS:
                answer = TOO_OFTEN
            if answer is not None:
                connection.unread += protocol.result(number, answer)
                return
            job = Job(identity, methods.start_job(method, params, self._pause))
            self._jobs.append(job)
        job.asked.append((connection, number))
        connection.waiting += 1

    def _prepare_free(self, params: Message) -> None:
        """Keep it if it may wait; else an attempt under way is one that somebody waits for now."""
        if params.get("when_possible") is True:
            methods.keep_free(params)
            self._try_kept_free(time.monotonic())
            return
        for job in self._jobs:
            if job.method == "free":
                job.work.is_attempt = False

    def _try_kept_free(self, now: float) -> None:
        """Begin an attempt of the Free that is kept, if it is time and no job is under way."""
        kept = kept_free.find_kept()
        if kept is None or now < kept.next_try or self._jobs:
            return
        seconds = kept.begin_try(now)
        self._jobs.append(Job(("free", None), methods.start_attempt(kept, seconds, self._pause)))

    def _cancel_kept_free(self) -> Message:
        was_kept = kept_free.forget()
        for job in self._jobs:
            if job.method == "free" and job.work.is_attempt:
                job.work.give_up()
        return {"state": "cancelled" if was_kept else "nothing"}

    def _note_kept_free(self, answer: Message) -> Message:
        """What an attempt has come to, as it is told; a Free that was done fulfils the kept one."""
        kept, now = kept_free.find_kept(), time.monotonic()
        if kept is None:
            return answer
        if answer["state"] != "busy":
            kept_free.forget()
            return answer
        kept.note_busy(answer, now)
        if kept.is_over(now):
            kept_free.forget()
            waited = time.time() - kept.asked
            return {**answer, "number": methods.remember_expired(waited)}
        return {**answer, "kept": kept.describe()}

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
        if job.method == "free":
            answer = self._note_kept_free(answer)
        paused = getattr(job.work, "paused", 0.0)
        self._paces[job.method].note(answer, paused, time.monotonic(), job.identity)
        for connection, number in job.asked:
            connection.waiting -= 1
            if not connection.dropped:
                connection.results.append((number, answer))
                self._guard(connection, self._deliver)

    def _deliver(self, connection: Connection) -> None:
        """Under the guard: an answer may be too long for a line."""
        for number, answer in connection.results:
            connection.unread += protocol.result(number, answer)
        connection.results.clear()
        self._send(connection)

    # -------------------------------------------------------------------- housekeeping
    def _check(self, now: float) -> None:
        for connection in list(self._connections):
            if now - connection.last_heard > IDLE_SECONDS and not connection.waiting:
                self._drop(connection)
        main_thread.restore_recursion_limit()
        main_thread.restore_collector()
        listener = self._listener
        if not listener.file_is_ours() or not gil_io.is_ours(listener.number, listener.bound):
            self._bind_again()

    def _bind_again(self) -> None:
        """macOS reaps temporary places, people delete directories, hosts close descriptors."""
        old = self._listener
        try:
            self._listener = _bind(self._directories)
        except OSError:
            return  # at the next check
        gil_io.close_ours(old.number, old.bound)


def _read(number: Any, method: str, params: Message) -> bytes:
    """The answer to `stats` or `hello`; a version of a framework that we misread is an error."""
    try:
        value = methods.stats(params) if method == "stats" else methods.hello()
    except Exception as problem:  # noqa: BLE001 - the requests after it are answered all the same
        text = f"{type(problem).__name__}: {problem}"
        return protocol.error(number, protocol.INTERNAL_ERROR, text)
    return protocol.result(number, value)


def _watch(entry: Any, number: int, events: int) -> None:
    entry.number, entry.events, entry.found = number, events, 0


def _is_same_user(number: int) -> bool:
    link = _socket.socket(fileno=number)
    try:
        if sys.platform == "darwin":
            link.setsockopt(_socket.SOL_SOCKET, _SO_NOSIGPIPE, 1)
        return peer.read_uid(link) == os.geteuid()
    except OSError:
        return False
    finally:
        link.detach()  # the number stays open


def _bind(directories: "list[str]") -> Listener:
    """A listening socket in the first run directory that is safe and works."""
    problem: Optional[OSError] = None
    for directory in directories:
        try:
            path = places.socket_path(directory, os.getpid())
            places.prepare(directory)
            return _listen(path)
        except OSError as error:
            problem = error
    raise problem or OSError("no run directory")


def _listen(path: str) -> Listener:
    unfinished = path[: -len("sock")] + "new"  # its name is there once it can be talked to
    if os.path.lexists(unfinished):
        os.unlink(unfinished)
    number = gil_io.listen(unfinished, MOST_CONNECTIONS)
    try:
        os.chmod(unfinished, 0o600)
        os.rename(unfinished, path)  # over what an earlier process with this pid left
        return Listener(number, os.fsencode(unfinished), path)
    except OSError:
        gil_io.close_ours(number, os.fsencode(unfinished))
        raise


def _identify(path: str) -> "tuple[int, int]":
    status = os.lstat(path)
    return status.st_dev, status.st_ino
