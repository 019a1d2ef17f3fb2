"""Starts this process's agent once, removes it in a forked child, stops it at exit."""

import atexit
import os
import sys
import threading
from types import FrameType
from typing import Optional

from . import agent_thread, gc_pause, known_waits, last_words, methods
from .backends import mps
from .frameworks import FRAMEWORKS
from .limit import limit_at_import  # noqa: F401 - for the startup hook
from .progress import optimizer_steps
from .server import Agent

# Another thread's attach() takes milliseconds.
ATTACH_SECONDS = 5.0

# (module, attribute path) of functions that fork only to run another program at once.
_STARTERS_OF_PROGRAMS = (
    ("subprocess", "Popen._execute_child"),  # with preexec_fn
    ("pty", "spawn"),
)

_agent: Optional[Agent] = None
_attaching = threading.Lock()
_hooked = False
_by_hook = False


def attach(quiet: bool = False) -> bool:
    """Starts the agent of this process, if there is none. Never raises, prints one line at most."""
    global _agent
    if os.environ.get("MPSBAR_DISABLE", "") not in ("", "0"):
        return False
    attaching = _attaching  # a child that is forked in here, by a finalizer, has another one
    if not attaching.acquire(timeout=ATTACH_SECONDS):  # a signal handler that attaches, in attach()
        return False
    try:
        if is_attached() or _namesake_is_attached():
            return True
        _check_interpreter()
        _hook()
        # Known before it runs: a Ctrl-C may come while it starts.
        _agent = Agent()
        last_words.note_start()
        _agent.start()
    except Exception as error:  # noqa: BLE001 - the host must not notice
        _agent = None
        if not quiet:
            _complain(error)
        return False
    finally:
        attaching.release()
    return is_attached()


def attach_by_hook(quiet: bool) -> bool:
    """Attaches a process whose code did not ask for it; so do its forked children from then on."""
    global _by_hook
    _by_hook = True
    is_new = attach(quiet)
    if is_new:
        optimizer_steps.count_steps(
            is_early=True
        )  # a framework was just imported: no step has run yet
    return is_new


def explain_at_import(name: str) -> None:
    """Counts CPU fallbacks for `mpsbar run --explain`; nothing else imports that module."""
    from . import fallbacks

    fallbacks.explain_at_import(name)


def is_attached() -> bool:
    return _agent is not None and _agent.is_alive()


def _namesake_is_attached() -> bool:
    """Returns whether the agent runs under its other name: copied by `mpsbar enable`, or mpsbar's
    own.
    """
    for name in ("mpsbar.agent.lifecycle", "mpsbar_agent.lifecycle", "mpsbar_agent.life"):
        other = sys.modules.get(name)
        if name != __name__ and other is not None and other.is_attached():
            return True
    return False


def _check_interpreter() -> None:
    if sys.implementation.name != "cpython":
        raise RuntimeError(f"{sys.implementation.name} is not supported, only CPython")
    # Going on in one of 3.13.0 ended the whole process with free(): invalid pointer.
    if not agent_thread.is_main_interpreter():
        raise RuntimeError("this is a subinterpreter: attach in the main one")
    # What the agent and the host's threads share is safe by the GIL (see gil_io); such a build's
    # collector is another one too, also where its GIL was turned on. None has been tried yet.
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    if not has_gil or "t" in getattr(sys, "abiflags", ""):
        raise RuntimeError("a free-threaded Python (without the GIL) is not supported yet")
    if not gc_pause.is_supported():
        raise RuntimeError("the garbage collector of this Python is not known to mpsbar yet")
    # Whatever else they have replaced, the agent uses Python's own (see gil_io).
    gevent = sys.modules.get("gevent.monkey")
    if gevent is not None and gevent.is_module_patched("threading"):
        raise RuntimeError("gevent has replaced threads")
    eventlet = sys.modules.get("eventlet.patcher")
    if eventlet is not None and eventlet.is_monkey_patched("thread"):
        raise RuntimeError("eventlet has replaced threads")


def _hook() -> None:
    global _hooked
    if not _hooked:
        _hooked = True
        atexit.register(_at_exit)
        os.register_at_fork(after_in_child=_after_fork)


def _at_exit() -> None:
    if _agent is None or _agent.pid != os.getpid():
        return
    folder = os.path.dirname(_agent.path)
    # Before the socket goes: a monitor that misses it looks for them.
    is_written = last_words.write_record(folder, methods.hello)
    _agent.stop()
    if not is_written and not _agent.is_alive():
        _agent.close()
        last_words.write_record(folder, methods.hello)


def _after_fork() -> None:
    global _agent, _attaching
    agent, _agent = _agent, None
    agent_thread.ident = None
    _attaching = threading.Lock()  # another thread may have locked it before the fork
    try:
        if agent is not None:
            agent.close()
            mps.after_fork()
            optimizer_steps.after_fork()
        if _by_hook and _may_compute(sys._getframe()):
            attach(quiet=True)
    except Exception:  # noqa: BLE001, S110 - whatever it is, the child must go on
        pass


def _may_compute(frame: Optional[FrameType]) -> bool:
    """Returns whether a forked child may hold tensors of its own (gunicorn --preload, a pool).

    It attaches at once: a hook that waits for its first model call makes torch.compile warn, and
    fail with fullgraph=True. Not a child that only becomes another program, nor the workers with
    which torch itself loads data or compiles: those would get a thread and a row for nothing.
    """
    torch = known_waits.torch_folder()
    folders = tuple(os.path.join(torch, name) + os.sep for name in ("utils/data", "_inductor"))
    starters = [known_waits.find_code(*names) for names in _STARTERS_OF_PROGRAMS]
    while frame is not None:
        if frame.f_code in starters or frame.f_code.co_filename.startswith(folders):
            return False
        frame = frame.f_back
    return any(framework.module in sys.modules for framework in FRAMEWORKS)


def _complain(error: Exception) -> None:
    if sys.stderr is None:  # print would take stdout then
        return
    try:
        text = " ".join(str(error).split())[:200]
        print(f"mpsbar: not attached: {text}", file=sys.stderr)  # noqa: T201 - the one line
    except Exception:  # noqa: BLE001, S110 - stderr may be closed
        pass
