"""The one agent of this process: attached once, gone after fork, quiet at exit."""

import atexit
import os
import sys
import threading
from typing import Any, Optional

from .backends import mps
from .server import Agent

# Another thread's attach() takes milliseconds.
ATTACH_SECONDS = 5.0

_agent: Optional[Agent] = None
_attaching = threading.Lock()
_hooked = False
_by_hook = False


def attach(quiet: bool = False) -> bool:
    """Start the agent of this process, if there is none. Never raises, prints one line at most."""
    global _agent
    if os.environ.get("MPSBAR_DISABLE", "") not in ("", "0"):
        return False
    if not _attaching.acquire(
        timeout=ATTACH_SECONDS
    ):  # a signal handler that attaches, in attach()
        return False
    try:
        if is_attached() or _namesake_is_attached():
            return True
        _check_interpreter()
        _hook()
        # Known before it runs: a Ctrl-C may come while it starts.
        _agent = Agent()
        _agent.start()
    except Exception as error:  # noqa: BLE001 - the host must not notice
        _agent = None
        if not quiet:
            _complain(error)
        return False
    finally:
        _attaching.release()
    return True


def attach_by_hook(quiet: bool) -> bool:
    """The same for a process whose code did not ask: its forked children attach by themselves."""
    global _by_hook
    _by_hook = True
    return attach(quiet)


def is_attached() -> bool:
    return _agent is not None and _agent.is_alive()


def _namesake_is_attached() -> bool:
    """Whether the agent runs under its other name: copied by `mpsbar enable`, or mpsbar's own."""
    for name in ("mpsbar.agent.lifecycle", "mpsbar_agent.lifecycle", "mpsbar_agent.life"):
        other = sys.modules.get(name)
        if name != __name__ and other is not None and other.is_attached():
            return True
    return False


def _check_interpreter() -> None:
    if sys.implementation.name != "cpython":
        raise RuntimeError(f"{sys.implementation.name} is not supported, only CPython")
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
    if _agent is not None:
        _agent.stop()


def _after_fork() -> None:
    global _agent, _attaching
    agent, _agent = _agent, None
    _attaching = threading.Lock()  # another thread may have held it at the fork
    if agent is not None:
        try:
            agent.close()
            mps.after_fork()
        except Exception:  # noqa: BLE001, S110 - whatever it is, the child must go on
            pass
    if _by_hook:
        _attach_at_first_use()


def _attach_at_first_use() -> None:
    """In a forked child (gunicorn --preload): torch is imported already, so wait for a model call.

    Not at once: most children never compute, and a thread makes their own forks warn (3.12).
    """
    nn = sys.modules.get("torch.nn.modules.module")
    if nn is None:
        return

    def first_use(*_: Any) -> None:
        handle.remove()
        attach(quiet=True)

    handle = nn.register_module_forward_pre_hook(first_use)


def _complain(error: Exception) -> None:
    if sys.stderr is None:  # print would take stdout then
        return
    try:
        text = " ".join(str(error).split())[:200]
        print(f"mpsbar: not attached: {text}", file=sys.stderr)  # noqa: T201 - the one line
    except Exception:  # noqa: BLE001, S110 - stderr may be closed
        pass
