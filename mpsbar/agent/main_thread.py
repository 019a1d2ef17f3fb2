"""Runs a job once on the host's main thread, or beside it while it waits; or gives up in time.

One job, several triggers; the first that finds all other threads idle runs it:
  a pending call  main runs bytecode; the call comes between two of them
  the event loop  main waits in its loop's select: a callback wakes it, then the pending call comes
  off main        main stands in a known wait or at Python's prompt
A trigger that finds main inside torch is refused, and fires again when main's outermost torch frame
returns.
"""

import gc
import os
import threading
import time
from types import CodeType, FrameType
from typing import Any, Callable, Optional

from . import gil_io, host_frames, host_settings, idle_check, known_waits
from .agent_thread import get_ident
from .gc_pause import JOB, CollectorPause, end_job
from .host_exceptions import raised_by_us
from .idle_check import NotIdleError
from .pending_call import CALL_SECONDS, PendingCall, call_on_return, drop_left_over, main_call

# A refused attempt costs main a few microseconds (with other threads some ms): not more often.
_RETRY_SECONDS = 0.002
_RETRY_AFTER_PROOF_SECONDS = 0.05
# Under a debugger, deep in calls or on busy cores it costs far more: afterwards so many times as
# long is the host's, up to the seconds below.
_REST_FACTOR = 10.0
_MAX_REST_SECONDS = 1.0
# How long a job that may run beside a computing main thread waits for main to run it itself.
_MAIN_FIRST_SECONDS = 0.1
# Main runs a pending call within milliseconds, unless it is in C code; busy cores need more.
_MAIN_AWAY_SECONDS = 0.25
_ABOUT_MAIN = ("main_computing", "main_unproven", "main_waiting")
# Reasons that stay true whatever main does meanwhile.
_LASTING = ("forked", "free_threaded", "switch_interval", "slow")
INTERRUPTED = "the process was interrupted meanwhile"

Prepare = Callable[[bool], None]  # gets whether it is on main
Work = Callable[[], None]


class MainState:
    """What the main thread does, as plain values: a frame must not be kept."""

    __slots__ = ("in_our_call", "in_torch", "is_waiting", "loop", "where")

    def __init__(self, is_waiting: bool, in_torch: bool, in_our_call: bool, where: str) -> None:
        self.is_waiting = is_waiting
        self.in_torch = in_torch
        self.in_our_call = in_our_call
        self.where = where
        self.loop: Any = None  # the event loop that waits there, if any


class MainThreadJob:
    """A job for the main thread, or beside it while it waits.

    `prepare` may let other threads run (gc does); `work` runs after the proof and may not.

    Without `work` there is only something to prepare, on main; where main just waits, nothing is.
    With `alone` the job runs only while every other thread is idle. Without it, it may run beside
    them: for work that only must not happen on the agent's thread. `pause` is given by the agent,
    whose thread may never collect garbage; a host's own thread needs none.
    """

    def __init__(
        self,
        prepare: Prepare,
        work: Optional[Work],
        deadline: float,
        alone: bool = True,
        pause: Optional[CollectorPause] = None,
    ) -> None:
        self._prepare, self._work = prepare, work
        self._deadline = deadline
        self._alone = alone
        self._sleep = gil_io.sleep if pause is None else _sleep_of(pause)
        self._claim = threading.Lock()  # taken while running, and for good once over
        self._attempts = 0
        self._prepared = False
        self._off_main_from = time.monotonic() + _MAIN_FIRST_SECONDS
        self._next_read = 0.0
        self._next_call = 0.0
        self._attempt_began = 0.0
        self._rests_until = 0.0  # no pending call before
        self._call_pending_since: Optional[float] = None
        self._loop_woken = False  # since the last pending call
        self._loops: list[Any] = []  # the host's event loop, whose run may end while we wake it
        self._exit_hook: Any = None  # schedules a pending call when main returns from torch
        self._pid = os.getpid()
        self._agent = get_ident()
        self._main = main_ident()
        self._waits = known_waits.find_waits()
        self._folder = known_waits.torch_folder()
        self.only_on_main = False
        self.on_main = False
        self.gil_until = 0.0  # how long the GIL is kept, once `work` runs; by time.monotonic()
        self.finished = False
        # Texts and not exceptions: those would keep the host's frames and their tensors alive.
        self.failure: Optional[str] = None
        self.refused: Optional[NotIdleError] = None  # the last reason; final when given up
        self.given_up = False

    # ------------------------------------------------------------ the agent's thread
    def step(self) -> bool:
        """Uses the trigger that fits what main does now. Returns True once finished or given up."""
        try:
            return self._step()
        except BaseException:  # an audit hook of the host may forbid what a read needs
            self.clean_up()
            raise

    def _step(self) -> bool:
        now = time.monotonic()
        if self.finished or self.given_up:
            return True
        if self._claim.locked():
            self._check_interrupted()  # else running: answered when it ends, however late
        elif now > self._deadline:
            self._give_up()
        elif now >= self._next_read:
            self._next_read = now + _RETRY_SECONDS
            main = self._read_main(with_loop=True)
            self._next_read = max(self._next_read, _end_of_rest(now, _RETRY_AFTER_PROOF_SECONDS))
            self._loops.append(main.loop)
            try:
                self._trigger(main, now)
            finally:
                del main
                host_frames.drop_references(self._loops)
        drop_left_over()
        return self.finished or self.given_up

    @property
    def main_was_waiting(self) -> bool:
        """Returns, once the job is over, whether main stood in a wait, and so ran nothing of it."""
        if self.given_up:
            return self.refused is not None and self.refused.code == "main_waiting"
        return not self.on_main

    def end_waiting(self) -> None:
        """Gives up at the next step, unless it runs already."""
        self._deadline = 0.0

    def clean_up(self) -> None:
        """Restores the host after the end of the job.

        On main an exception may have cut that short; on this thread none can.
        """
        main_call.cancel()
        host_settings.restore_interval()
        idle_check.forget_call_sites()
        self._exit_hook = None
        restore_host()
        # Drop the caller's bound methods: they form a cycle, which only the host's collector would
        # free.
        self._prepare, self._work = _ignore, None

    def _read_main(self, with_loop: bool = False) -> MainState:
        """Returns what main does now. A caller that asks for the loop gives it to
        `drop_references`.
        """
        frames = host_frames.current_frames()
        frame = frames.get(self._main)
        stack = host_frames.read_stack(frame)
        ours = MainThreadJob.run_on_main.__code__
        try:
            state = MainState(
                is_waiting=idle_check.at_classic_prompt(frame)
                or idle_check.is_waiting(stack, self._waits, self._main),
                in_torch=host_frames.is_below(frame, self._folder),
                in_our_call=any(frame.f_code is ours for frame in stack),
                where=host_frames.describe_frame(frame),
            )
            if with_loop:
                state.loop = idle_check.find_idle_loop(stack, self._waits)
            return state
        finally:
            frame = None
            host_frames.drop_references(stack)
            host_frames.drop_frames(frames)

    def _trigger(self, main: MainState, now: float) -> None:
        can_run_here = main.is_waiting and not main.in_torch and main.loop is None
        if not self._alone and self._work is not None and now > self._off_main_from:
            can_run_here = True  # beside whatever main does: without the GIL it stands still
        if self.only_on_main:
            can_run_here = False
        if can_run_here and self._try_off_main():
            return
        is_outside = not main.in_torch and self._exit_hook is not None
        if now >= self._rests_until and (now >= self._next_call or is_outside):
            self._exit_hook, self._loop_woken = None, False
            if self._call_pending_since is None:  # before: on main it comes at once
                self._call_pending_since = now
            self._next_call = now + CALL_SECONDS if main_call.schedule(self) else 0.0
        if main.loop is not None and not self._loop_woken:
            self._wake(main.loop)

    def _wake(self, loop: Any) -> None:
        self._loop_woken = True
        try:
            self._loops.append(loop.call_soon_threadsafe(_nothing))  # a handle holds its loop
        except RuntimeError:
            pass  # closed meanwhile

    def _try_off_main(self) -> bool:
        if not self._claim.acquire(blocking=False):
            return True
        if self._work is None:
            self.finished = True
            return True
        try:
            self._run({self._agent}, on_main=False)
        except NotIdleError as reason:
            self._refuse(reason)
            return False
        except Exception as error:  # noqa: BLE001 - sent to the client, never raised in the host
            self.failure, self.finished = str(error)[:300], True
        return True

    def _check_interrupted(self) -> None:
        """Ends the job if the host's exceptions interrupted it on main twice and the claim is still
        locked.
        """
        attempts = self._attempts
        main = self._read_main()
        same = attempts == self._attempts and self._claim.locked()
        if not main.in_our_call and same and not self.finished:
            self.failure, self.finished = INTERRUPTED, True

    def _give_up(self) -> None:
        if self._claim.acquire(blocking=False):
            self.refused = self._find_reason()
            self.given_up = True

    def _find_reason(self) -> NotIdleError:
        """Says why it was not done: what makes it impossible, an attempt's refusal, or where main
        is.
        """
        if self._alone:
            try:
                idle_check.check_interpreter()
            except NotIdleError as reason:
                return reason.with_traceback(None)
        refused = self.refused
        if refused is not None and refused.code in _LASTING:
            return refused
        if refused is not None and refused.code not in _ABOUT_MAIN and not self._main_is_away():
            return refused
        main = self._read_main()
        if main.in_torch:
            return NotIdleError("main_computing", main.where)
        return NotIdleError("main_waiting" if main.is_waiting else "main_unproven", main.where)

    def _main_is_away(self) -> bool:
        """Returns whether main has not run for long: what an attempt found then is out of date."""
        since = self._call_pending_since
        return since is not None and time.monotonic() - since > _MAIN_AWAY_SECONDS

    # ------------------------------------------------------------------ main's thread
    def run_on_main(self, frame: Optional[FrameType]) -> None:
        """Runs on main, between two bytecodes of `frame`."""
        now = self._attempt_began = time.monotonic()
        try:
            self._attempt_on_main(frame, now)
        except BaseException as error:
            ours = raised_by_us(error)
            self.failure = str(error)[:300] if ours else INTERRUPTED
            self.finished = True
            if not ours:
                raise
        finally:
            self._rests_until = _end_of_rest(self._attempt_began, _MAX_REST_SECONDS)

    def _attempt_on_main(self, frame: Optional[FrameType], now: float) -> None:
        self._next_call, self._loop_woken = 0.0, False
        self._call_pending_since = None
        if now > self._deadline:
            return  # too late; the agent will say so
        inside = host_frames.outermost_torch_frame(frame, self._folder)
        if inside is not None and self._alone:
            where = host_frames.describe_frame(inside.f_back or frame)
            self.refused = NotIdleError("main_computing", where)
            # Else it waits for this very frame.
            if self._exit_hook is None or self._exit_hook() is None:
                self._exit_hook = call_on_return(inside)
            if self._exit_hook is not None:
                self._next_call = now + CALL_SECONDS
            return
        try:
            idle_check.check_recursion()
        except NotIdleError as reason:
            self.refused = reason.with_traceback(None)
            return
        self._attempts += 1
        if self._claim.acquire(blocking=False):
            try:
                self._run({self._agent, self._main}, on_main=True)
            except NotIdleError as reason:
                self._refuse(reason)

    # ------------------------------------------------------------------------- both
    def _run(self, skip: "set[int]", on_main: bool) -> None:
        """Checks the other threads, prepares, checks again with the GIL kept, does the work."""
        host_frames.drop_frames(self._prove(skip))
        self.on_main = on_main
        if not self._prepared:
            began = time.monotonic()
            self._prepare(on_main)
            self._prepared = True
            self._attempt_began += time.monotonic() - began  # it is not repeated
        if self._work is not None:
            self._run_work(self._work, skip, on_main)
        self.finished = True

    def _run_work(self, work: Work, skip: "set[int]", on_main: bool) -> None:
        # Also when alone: a thread that is just being started has no frame to be seen by.
        with idle_check.keep_gil(gil_io.sleep if on_main else self._sleep) as gil_until:
            in_c: dict[int, CodeType] = {}
            proven = self._prove(skip, in_c)
            try:
                if self._alone:
                    idle_check.check_unchanged(proven, skip, in_c)
            finally:
                host_frames.drop_frames(proven)
            if time.monotonic() > gil_until - host_settings.KEEP_SECONDS / 2:
                raise NotIdleError("slow", "the machine was too busy to be sure")
            self.gil_until = gil_until
            work()

    def _prove(
        self, skip: "set[int]", in_c: "Optional[dict[int, CodeType]]" = None
    ) -> host_frames.Frames:
        """Returns the other threads' frames; raises NotIdleError if one may be inside an op."""
        if os.getpid() != self._pid:
            raise NotIdleError("forked", "this is a child of the process")
        if not self._alone:
            return {}
        frames = idle_check.check_others(self._waits, skip, self._folder, in_c)
        if self._main not in skip:
            try:
                idle_check.check_main(frames.get(self._main), self._folder)
            except BaseException:
                host_frames.drop_frames(frames)
                raise
        return frames

    def _refuse(self, reason: NotIdleError) -> None:
        self.refused = reason.with_traceback(None)
        self._next_read = self._next_call = time.monotonic() + _RETRY_AFTER_PROOF_SECONDS
        self._claim.release()


def restore_host() -> None:
    """Restores host settings and releases objects that a job left."""
    restore_collector()
    drop_left_over()  # its call may need a higher limit, if main is deep
    restore_recursion_limit()


def is_host_restored() -> bool:
    """Returns whether everything is restored; False until main has run."""
    return not host_frames.left_over and host_settings.recursion_limit_of_host() is None


def may_restore_soon() -> bool:
    """Returns whether something is left to restore that does not wait for main to run."""
    return not (is_host_restored() or main_call.is_pending())


def restore_recursion_limit() -> None:
    """Gives the host its limit back, unless main is deep: a call that is still pending may not fit.

    Then the agent does it at one of its checks.
    """
    limit = host_settings.recursion_limit_of_host()
    if limit is None:
        return
    frames = host_frames.current_frames()
    stack = host_frames.read_stack(frames.get(main_ident()))
    depth = len(stack)
    host_frames.drop_references(stack)
    host_frames.drop_frames(frames)
    if depth < limit // 4:  # C code counts too
        host_settings.restore_recursion_limit()


def restore_collector() -> None:
    """Ends the pause of a job on main that an exception of the host has cut short."""
    if gc.get_threshold() != JOB:
        return
    frames = host_frames.current_frames()
    stack = host_frames.read_stack(frames.get(main_ident()))
    jobs = (PendingCall.__iter__.__code__, MainThreadJob._run_work.__code__)
    is_running = any(frame.f_code in jobs for frame in stack)
    host_frames.drop_references(stack)
    host_frames.drop_frames(frames)
    if not is_running:
        end_job()


class _Main:
    """The main thread's number, read before gevent can replace threads: then it is a greenlet's."""

    ident = threading.main_thread().ident or 0


def main_ident() -> int:
    return _Main.ident


def _end_of_rest(began: float, most: float) -> float:
    """Returns when the next attempt may start, after one that began at `began` and just ended."""
    now = time.monotonic()
    return now + min(_REST_FACTOR * (now - began), most)


def _sleep_of(pause: CollectorPause) -> Callable[[float], None]:
    def sleep(seconds: float) -> None:
        pause.call(gil_io.poll, *gil_io.poll_arguments(None, 0, seconds))

    return sleep


def _ignore(_: bool) -> None:
    """Does nothing: there is nothing to prepare any more."""


def _nothing() -> None:
    """Does nothing but wake an event loop; the pending call comes first."""


def _after_fork() -> None:
    """Ends all jobs in the child: its pending calls and settings came from the parent."""
    _Main.ident = get_ident()  # whichever thread forked is the child's main thread
    main_call.cancel()
    host_settings.restore_settings()


os.register_at_fork(after_in_child=_after_fork)
