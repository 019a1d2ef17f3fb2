"""The agent: one daemon thread that answers this user's monitors on a Unix socket."""

import errno
import os
import sys
import time
from collections import deque
from typing import Any, Callable

from . import gil_io, main_thread, methods, pending_free, protocol, user_folders
from .agent_thread import AgentThread
from .gc_pause import CollectorPause
from .jobs import JobQueue
from .listener import bind, is_same_user
from .pacing import REST_FACTOR, Allowance
from .protocol import Message

IDLE_SECONDS = 60.0
CHECK_SECONDS = 30.0
CHECK_AFTER_JOB_SECONDS = 1.0
BIND_AGAIN_SECONDS = 1.0
STEP_SECONDS = 0.002
MAX_CONNECTIONS = 64
ACCEPTED_AT_ONCE = 16
MAX_WAITING = 100  # answers that one connection may wait for
# Each round of answers makes the host's thread wait for the GIL once (make bench, training): in the
# long run this many a second, however many ask; a person's few clicks are never slowed.
ROUNDS_PER_SECOND = 10.0
ROUNDS_AT_ONCE = 10.0
# A round in which clients only came or went does less.
QUIET_ROUND = 0.25
# A monitor asks for one thing or two at once. Of who sends more, the rest waits for other rounds.
MAX_ANSWERED_AT_ONCE = 8
# Rounds that cost this much CPU together are followed by a rest; those of a few monitors never do.
WORK_AT_ONCE_SECONDS = 0.05
# Longer than this, and the host would run without collections whenever it gets the GIL from us.
AT_A_STRETCH_SECONDS = 0.001
MAX_UNREAD = 4 * protocol.MAX_LINE


class Connection:
    """One client: what it sent and has no answer yet, and what it has not read yet."""

    def __init__(self, number: int, path: bytes, now: float) -> None:
        self.number = number  # of its descriptor
        self.path = path  # what its listener was bound to
        self.unparsed = bytearray()
        self.lines: deque[bytes] = deque()  # received, not answered yet
        self.unread = bytearray()
        self.last_heard = now
        self.waiting = 0  # answers still to come
        self.results: list[tuple[Any, Message]] = []  # of jobs, about to be sent
        self.ended = False  # nothing more will be read
        self.dropped = False


class Agent:
    """One daemon thread. Its Python code runs with the collector paused, see gc_pause."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._directories = user_folders.find_run_folders()
        self._listener = bind(self._directories, MAX_CONNECTIONS)
        self._pause = CollectorPause()
        self._buffer = gil_io.ReceiveBuffer()
        self._polled = (gil_io.PollEntry * (MAX_CONNECTIONS + 1))()
        self._connections: list[Connection] = []
        self._jobs = JobQueue(self._pause)
        self._stopping = False
        self._next_check = time.monotonic() + CHECK_SECONDS
        self._rounds = Allowance(ROUNDS_PER_SECOND, ROUNDS_AT_ONCE)
        self._work = Allowance(1.0 / REST_FACTOR, WORK_AT_ONCE_SECONDS)
        self._clients_wait_until = 0.0  # until then clients wait
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
        """Ends the thread at exit and joins it: inside torch while Python ends, it can bring the
        process down.
        """
        if self.pid != os.getpid():
            return
        self._stopping = True
        self._wake()
        self._listener.remove_file()
        if not self._thread.is_current() and self._thread.join(1.0):
            self._pause.end()

    def _wake(self) -> None:
        """Wakes the thread through the listener: a descriptor kept for that could belong to the
        host by now.
        """
        listener = self._listener
        try:
            if listener.file_is_ours():
                gil_io.wake_listener(listener.path)
                return
        except OSError:
            pass  # the host is out of descriptors
        gil_io.hang_up_ours(listener.number, listener.bound)

    def close(self) -> None:
        """Closes what is ours, where the thread does not run: a forked child has none."""
        self._pause.end()
        for connection in self._connections:
            gil_io.close_ours(connection.number, connection.path)
        gil_io.close_ours(self._listener.number, self._listener.bound)

    # ------------------------------------------------------------------------ the loop
    def _run(self) -> None:
        while not self._stopping:
            try:
                self._serve_round()
            except Exception:  # noqa: BLE001 - a failed round must not end the thread
                if self._stopping or sys.is_finalizing():
                    return
                self._sleep(0.1)

    def _serve_round(self) -> None:
        self._answered = False
        ready = self._wait()
        if self._stopping:
            return
        began = time.thread_time()
        for connection in ready:
            self._guard(connection, self._serve)
        if self._polled[0].found:
            self._accept()
        worked = time.thread_time() - began
        if not self._jobs.is_empty():
            self._step_job()
        now = time.monotonic()
        self._jobs.try_pending_free(now)
        if ready or self._polled[0].found:
            self._pace(now, worked)
        if now >= self._next_check:
            self._next_check = now + CHECK_SECONDS
            self._check(now)

    def _wait(self) -> "list[Connection]":
        """Returns the connections that are ready; the listener is the first entry of the poll."""
        now = time.monotonic()
        if now < self._clients_wait_until:
            _watch(self._polled[0], -1, 0)
            left = self._clients_wait_until - now
            self._sleep(left if self._jobs.is_empty() else min(left, STEP_SECONDS))
            return []
        seconds = self._next_time() - now if self._jobs.is_empty() else STEP_SECONDS
        connections = self._connections
        _watch(self._polled[0], self._listener.number, gil_io.POLLIN)
        for index, connection in enumerate(connections, 1):
            if connection.lines:
                seconds = 0.0
            events = 0 if connection.ended or connection.lines else gil_io.POLLIN
            if connection.unread:
                events |= gil_io.POLLOUT
            # Without events it would be found hung up over and over.
            _watch(self._polled[index], connection.number if events else -1, events)
        arguments = gil_io.poll_arguments(self._polled, 1 + len(connections), seconds)
        count = self._pause.call(gil_io.poll, *arguments)
        self._woken = time.monotonic()
        if count <= 0:
            _watch(self._polled[0], -1, 0)
            return [connection for connection in connections if connection.lines]
        return [
            connection
            for index, connection in enumerate(connections, 1)
            if connection.lines or self._polled[index].found
        ]

    def _next_time(self) -> float:
        """Returns when something is to be done without being asked."""
        pending = pending_free.find_pending()
        return self._next_check if pending is None else min(self._next_check, pending.next_try)

    def _sleep(self, seconds: float) -> None:
        self._pause.call(gil_io.poll, *gil_io.poll_arguments(None, 0, seconds))
        self._woken = time.monotonic()

    def _pace(self, now: float, worked: float) -> None:
        """Lets requests gather when they come too often or have cost too much."""
        rounds = self._rounds.spend(1.0 if self._answered else QUIET_ROUND, now)
        self._clients_wait_until = max(rounds, self._work.spend(worked, now))

    def _guard(self, connection: Connection, action: Callable[[Connection], None]) -> None:
        """Does something for a connection; drops it if that fails."""
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
                number = gil_io.accept(listener.number, listener.bound)
            except OSError as problem:
                if problem.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                    self._sleep(0.05)  # the host is out of descriptors: do not spin on the listener
                return
            self._add(number, listener.bound)

    def _add(self, number: int, path: bytes) -> None:
        for stale in [known for known in self._connections if known.number == number]:
            self._drop_record(stale)  # the host closed it, and the number came back to us
        if not is_same_user(number):
            gil_io.close_ours(number, path)
            return
        if len(self._connections) >= MAX_CONNECTIONS:
            # Whoever keeps all of them busy must not lock the monitor out.
            self._drop(min(self._connections, key=lambda known: (known.waiting, known.last_heard)))
        self._connections.append(Connection(number, path, time.monotonic()))

    def _serve(self, connection: Connection) -> None:
        if not connection.ended and not connection.lines:
            self._receive(connection)
        self._answer_some(connection)
        self._send(connection)

    def _receive(self, connection: Connection) -> None:
        try:
            data = self._buffer.receive(connection.number, connection.path)
        except (BlockingIOError, InterruptedError):
            return
        if not data:
            connection.ended = True
            return
        connection.last_heard = time.monotonic()
        connection.unparsed += data
        connection.lines.extend(protocol.split_lines(connection.unparsed))

    def _answer_some(self, connection: Connection) -> None:
        for _ in range(min(MAX_ANSWERED_AT_ONCE, len(connection.lines))):
            if connection.ended:
                connection.lines.clear()
                break
            self._answer(connection, connection.lines.popleft())
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
                sent = gil_io.send(connection.number, connection.path, connection.unread)
                del connection.unread[:sent]
            except (BlockingIOError, InterruptedError):
                pass
        if len(connection.unread) > MAX_UNREAD:
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
        self, connection: Connection, number: Any, identity: methods.JobIdentity, params: Message
    ) -> None:
        if connection.waiting >= MAX_WAITING:
            raise OSError("the client asks without end")
        answer = self._jobs.ask(identity, params, (connection, number))
        if answer is None:
            connection.waiting += 1
        else:
            connection.unread += protocol.result(number, answer)

    def _step_job(self) -> None:
        finished = self._jobs.step()
        if finished is None:
            return
        if not main_thread.is_host_restored():  # main comes by soon, unless it is in C code
            self._next_check = min(self._next_check, time.monotonic() + CHECK_AFTER_JOB_SECONDS)
        requesters, answer = finished
        for connection, number in requesters:
            connection.waiting -= 1
            if not connection.dropped:
                connection.results.append((number, answer))
                self._guard(connection, self._deliver)

    def _deliver(self, connection: Connection) -> None:
        """Sends the answers of jobs. Under the guard: one may be too long for a line."""
        for number, answer in connection.results:
            connection.unread += protocol.result(number, answer)
        connection.results.clear()
        self._send(connection)

    # -------------------------------------------------------------------- housekeeping
    def _check(self, now: float) -> None:
        for connection in list(self._connections):
            if now - connection.last_heard > IDLE_SECONDS and not connection.waiting:
                self._drop(connection)
        main_thread.restore_host()
        if main_thread.may_restore_soon():
            self._next_check = now + CHECK_AFTER_JOB_SECONDS
        listener = self._listener
        if not listener.file_is_ours() or not gil_io.is_ours(listener.number, listener.bound):
            self._bind_again()

    def _bind_again(self) -> None:
        """Binds anew: macOS empties temporary folders, people delete directories, hosts close
        descriptors.
        """
        old = self._listener
        try:
            self._listener = bind(self._directories, MAX_CONNECTIONS)
        except OSError:
            return  # at the next check
        gil_io.close_ours(old.number, old.bound)


def _read(number: Any, method: str, params: Message) -> bytes:
    """Returns the answer to `stats` or `hello`; a version of a framework that we misread is an
    error.
    """
    try:
        value = methods.stats(params) if method == "stats" else methods.hello()
    except Exception as problem:  # noqa: BLE001 - the requests after it are answered all the same
        text = f"{type(problem).__name__}: {problem}"
        return protocol.error(number, protocol.INTERNAL_ERROR, text)
    return protocol.result(number, value)


def _watch(entry: Any, number: int, events: int) -> None:
    entry.number, entry.events, entry.found = number, events, 0
