"""The functions that only wait, and torch's wrappers, which only call: each by its code object.

A wait is recognised by its code object, never by its module: `Thread.run` and `_WorkItem.run` are
standard library too, and call the work itself.
"""

import os
import sys
from types import CodeType
from typing import Any, Optional

# (module, attribute path) of functions that wait in C and call nobody's code while they are on top.
_WAITS = (
    ("threading", "Condition.wait"),
    ("threading", "Thread._wait_for_tstate_lock"),  # join, up to 3.12
    ("threading", "Thread.join"),  # 3.13
    ("threading", "_shutdown"),  # main has ended and waits for the threads that have not
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
    ("multiprocessing.pool", "Pool._handle_tasks"),  # over iter(SimpleQueue.get, None)
    ("ipykernel.heartbeat", "Heartbeat.run"),
    ("ipykernel.iostream", "OutStream._watch_pipe_fd"),  # reads what C code prints
    ("ipykernel.parentpoller", "ParentPollerUnix.run"),
    ("zmq.sugar", "device"),  # the heartbeat's, with a newer pyzmq
    ("zmq.sugar.poll", "Poller.poll"),
    ("zmq.sugar.socket", "Socket.poll"),
    ("_pyrepl.unix_console", "UnixConsole.wait"),  # 3.13's prompt
    ("_pyrepl.unix_console", "UnixConsole._UnixConsole__read"),
    ("_pyrepl.unix_console", "UnixConsole.get_event"),
    ("mpsbar.agent.gc_pause", "CollectorPause.call"),  # the agent, seen by %mpsbar free
    ("mpsbar_agent.gc_pause", "CollectorPause.call"),
)

# (module, attribute path, names of functions inside it) of torch's wrappers that only call a
# function of the program: plain Python which stands at the base of its whole main().
_WRAPPERS = (
    ("torch.utils._contextlib", "context_decorator", "decorate_context"),  # @torch.no_grad()
    ("torch.autograd.grad_mode", "_DecoratorContextManager.__call__", "decorate_context"),  # 1.x
    ("torch.amp.autocast_mode", "autocast_decorator", "decorate_autocast"),
    ("torch._dynamo.eval_frame", "DisableContext.__call__", "_fn"),  # @torch.compiler.disable
    ("torch.distributed.elastic.multiprocessing.errors", "record", "wrap", "wrapper"),
    ("torch.multiprocessing.spawn", "_wrap"),  # a child's first function
    ("torch.multiprocessing.spawn", "spawn"),  # and its parent, which waits
    ("torch.multiprocessing.spawn", "start_processes"),
    ("torch.multiprocessing.spawn", "ProcessContext.join"),
)
WRAPPER_NAMES = frozenset(names[-1].rpartition(".")[2] for names in _WRAPPERS)


def find_waits() -> "set[CodeType]":
    """Returns the code objects of all waits in modules the host has imported, looked up for each
    Free.
    """
    return {code for module, path in _WAITS if (code := find_code(module, path)) is not None}


def find_code(module: str, path: str) -> Optional[CodeType]:
    target: Any = sys.modules.get(module)
    for name in path.split("."):
        target = getattr(target, name, None)
    return getattr(target, "__code__", None)


def torch_folder() -> str:
    """Returns where torch's own Python code is; without torch, a path that nothing is in."""
    path = getattr(sys.modules.get("torch"), "__file__", None)
    return os.path.dirname(path) + os.sep if path else "\0"


def is_of(code: CodeType, folder: str) -> bool:
    """Returns whether this is code of a framework in `folder`, and no mere wrapper around the
    program's.
    """
    return code.co_filename.startswith(folder) and (
        code.co_name not in WRAPPER_NAMES or not is_wrapper(code)
    )


def is_wrapper(code: CodeType) -> bool:
    return any(code is _find_inner_code(*names) for names in _WRAPPERS)


def _find_inner_code(module: str, path: str, *inner: str) -> Optional[CodeType]:
    """Returns the code of a function, or of a function that is defined inside it."""
    code = find_code(module, path)
    for name in inner:
        constants: tuple[Any, ...] = code.co_consts if code is not None else ()
        code = next(
            (value for value in constants if type(value) is CodeType and value.co_name == name),
            None,
        )
    return code
