"""The agent's thread, started below Python's threading module.

A program may count its threads (`while threading.active_count() > 1`), list or join them all, and
gevent replaces them: ours is in none of those lists. Its name is the kernel's, which py-spy, gdb,
top -H and Python 3.14's faulthandler show.
"""

import _thread
import ctypes
import sys
from types import BuiltinFunctionType
from typing import Any, Callable, Optional

from .gil_io import sleep

NAME = "mpsbar-agent"  # Linux keeps 15 characters

# Python's own, taken before gevent replaces them: afterwards they count greenlets.
get_ident = _thread.get_ident
_allocate_lock = _thread.allocate_lock
_PR_SET_NAME = 15
# After its last statement the thread still has its frame for some microseconds.
_LAST_STATEMENT_SECONDS = 0.05

# The identifier of the agent's thread, while there is one.
ident: Optional[int] = None


class AgentThread:
    """A daemon thread that runs `target` once."""

    def __init__(self, target: Callable[[], None]) -> None:
        self._target = target
        self._ident: Optional[int] = None
        self._has_started = _allocate_lock()
        self._is_running = _allocate_lock()

    def start(self) -> None:
        """Starts the thread and returns once it runs.

        Raises RuntimeError if the system cannot create one.
        """
        self._is_running.acquire()
        self._has_started.acquire()
        try:
            _find_start()(self._run, ())
        except BaseException:
            self._is_running.release()
            raise
        self._has_started.acquire()

    def is_alive(self) -> bool:
        return self._is_running.locked()

    def is_current(self) -> bool:
        return self._ident == get_ident()

    def join(self, seconds: float) -> bool:
        """Returns whether it has ended within that time; then it runs no Python code any more."""
        if not self._is_running.acquire(timeout=seconds):
            return False
        self._is_running.release()
        waited = 0.0
        try:
            while self._ident in sys._current_frames() and waited < _LAST_STATEMENT_SECONDS:
                sleep(0.001)
                waited += 0.001
        except Exception:  # noqa: BLE001 - an audit hook of the host that does not allow it
            sleep(_LAST_STATEMENT_SECONDS)
        return True

    def _run(self) -> None:
        global ident  # noqa: PLW0603 - there is one agent in a process
        try:
            # A debugger that replaces start_new_thread traces every thread; one that replaces
            # settrace as well would complain.
            if isinstance(sys.settrace, BuiltinFunctionType):
                sys.settrace(None)
                sys.setprofile(None)
            ident = self._ident = get_ident()
            _set_name()
            self._has_started.release()
            self._target()
        except BaseException:  # noqa: BLE001, S110 - never into the host's hooks
            pass
        finally:
            ident = None
            if self._has_started.locked():
                self._has_started.release()
            self._is_running.release()


def is_main_interpreter() -> bool:
    # By item: an attribute would be shared with the program, and its type with it.
    current = ctypes.pythonapi["PyInterpreterState_Get"]
    main = ctypes.pythonapi["PyInterpreterState_Main"]
    current.restype = main.restype = ctypes.c_void_p
    return bool(current() == main())


def _find_start() -> Callable[[Any, Any], int]:
    """Finds Python's own start_new_thread: debuggers replace it, and trace what theirs starts.

    Most leave its older name alone; pydevd (debugpy, PyCharm) replaces both, and keeps Python's own
    beside them.
    """
    for name in ("start_new", "_original_start_new_thread"):
        start: Any = getattr(_thread, name, None)
        if isinstance(start, BuiltinFunctionType):
            return start
    return _thread.start_new_thread


def _set_name() -> None:
    """Names this thread; a system without such a function shows the program's name."""
    name = NAME.encode()
    try:
        if sys.platform == "darwin":
            ctypes.pythonapi["pthread_setname_np"](name)
        else:
            ctypes.pythonapi["prctl"](_PR_SET_NAME, name, 0, 0, 0)
    except (AttributeError, OSError):
        pass
