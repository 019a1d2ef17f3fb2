"""Proof that no Python thread can be inside an MPS op: every other thread stands in a known wait.

A wait is recognised by its code object, never by its module: `Thread.run` and `_WorkItem.run` are
stdlib too, and call the work itself. An unknown frame counts as computing. CPU time or a sleeping
kernel thread prove nothing: a thread that waits for the GPU looks just the same.

Nothing here takes a lock or imports: it runs on the host's main thread between any two bytecodes.
"""

import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any, Optional

# (module, attribute path) of functions that wait in C and call nobody's code while they are on top.
_WAITS = (
    ("threading", "Condition.wait"),
    ("threading", "Thread._wait_for_tstate_lock"),  # join, up to 3.12
    ("threading", "Thread.join"),  # 3.13
    ("selectors", "SelectSelector.select"),
    ("selectors", "SelectSelector._select"),
    ("selectors", "PollSelector.select"),
    ("selectors", "EpollSelector.select"),
    ("selectors", "DevpollSelector.select"),
    ("selectors", "KqueueSelector.select"),
    ("subprocess", "Popen._try_wait"),
    ("multiprocessing.popen_fork", "Popen.poll"),
    ("multiprocessing.connection", "Connection._recv"),
    ("concurrent.futures.thread", "_worker"),  # an idle pool: its SimpleQueue.get has no frame
    ("ipykernel.heartbeat", "Heartbeat.run"),
    ("zmq.sugar.poll", "Poller.poll"),
    ("zmq.sugar.socket", "Socket.poll"),
    ("_pyrepl.unix_console", "UnixConsole.wait"),  # 3.13's prompt
    ("_pyrepl.unix_console", "UnixConsole._UnixConsole__read"),
    ("_pyrepl.unix_console", "UnixConsole.get_event"),
)


class Computing(Exception):
    """A thread that may be inside an op; `code` and `where` say which and where it is."""

    def __init__(self, code: str, where: str) -> None:
        super().__init__(f"{code}: {where}")
        self.code = code
        self.where = where


def known_waits() -> "set[CodeType]":
    """The code objects of all waits whose modules the host has imported. Looked up for each Free."""
    found = set()
    for module, path in _WAITS:
        target: Any = sys.modules.get(module)
        for name in path.split("."):
            target = getattr(target, name, None)
        code = getattr(target, "__code__", None)
        if code is not None:
            found.add(code)
    return found


def torch_folder() -> str:
    torch = sys.modules.get("torch")
    return os.path.dirname(getattr(torch, "__file__", None) or "\0") + os.sep


def outermost_torch_frame(frame: Optional[FrameType], folder: str) -> Optional[FrameType]:
    """The torch frame that user code called, if any is on this stack."""
    found = None
    while frame is not None:
        if frame.f_code.co_filename.startswith(folder):
            found = frame
        frame = frame.f_back
    return found


def place(frame: Optional[FrameType]) -> str:
    """Where a frame is, for people: train.py:42 in step."""
    if frame is None:
        return "outside Python"
    name = os.path.basename(frame.f_code.co_filename)
    return f"{name}:{frame.f_lineno} in {frame.f_code.co_name}"[:200]


def check_others(waits: "set[CodeType]", skip: "set[int]", folder: str) -> None:
    """Raise Computing unless every thread but those in `skip` stands in a known wait."""
    autograd = os.path.join(folder, "autograd") + os.sep
    for ident, frame in sys._current_frames().items():
        if ident in skip:
            continue
        if frame.f_code not in waits or outermost_torch_frame(frame, autograd) is not None:
            raise Computing("thread_computing", f"{_thread_name(ident)}, {place(frame)}")


def check_main(frame: Optional[FrameType], folder: str) -> None:
    """For work off main: its stack may hold no torch frame, and no frame at all only at the prompt."""
    if outermost_torch_frame(frame, folder) is not None or (
        frame is None and not at_classic_prompt(frame)
    ):
        raise Computing("main_computing", place(frame))


def others_exist(skip: "set[int]") -> bool:
    return not skip.issuperset(sys._current_frames())


def at_classic_prompt(main_frame: Optional[FrameType]) -> bool:
    """Python's own prompt up to 3.12, or without a capable terminal: main runs no frame at all."""
    return main_frame is None and hasattr(sys, "ps1")


def _thread_name(ident: int) -> str:
    # Not enumerate(): it takes a lock that main may hold when this runs in its midst.
    thread = threading._active.get(ident)  # type: ignore[attr-defined]
    return str(thread.name)[:60] if thread is not None else f"thread {ident}"
