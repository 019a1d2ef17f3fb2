"""Runs the doctor's throwaway in somebody's Python, and makes a Device of what it said."""

import threading
import time
from pathlib import Path

from mpsbar.doctor.doctor_child import MARK
from mpsbar.doctor.parse import parse_device, parse_text
from mpsbar.doctor.rules import Device
from mpsbar.system.child_process import ChildAnswer, start_child
from mpsbar.system.ownership import NotTrusted

# A cold torch from a slow disk, on a busy machine.
LOOK_SECONDS = 60.0
_SCRIPT = Path(__file__).with_name("doctor_child.py")
_MOST_ANSWERS = 32


def inspect_python(
    python: str, seconds: float = LOOK_SECONDS, stop: threading.Event | None = None
) -> Device:
    """Never raises: no such file, a crash and a hang are answers."""
    try:
        return _inspect(python, seconds, stop or threading.Event())
    except NotTrusted as problem:
        return Device(python, "unsafe", error=str(problem))
    except (FileNotFoundError, NotADirectoryError):
        return Device(python, "no_python")
    except (OSError, ValueError) as error:
        return Device(python, "not_python", error=parse_text(error))


def _inspect(python: str, seconds: float, stop: threading.Event) -> Device:
    answers: list[ChildAnswer] = []
    with start_child(python, [str(_SCRIPT)], MARK) as child:
        deadline = time.monotonic() + seconds
        code = None  # it hung
        for heard in child.read_answers():
            answers += heard[: _MOST_ANSWERS - len(answers)]
            if stop.is_set():
                return Device(python, "stopped")
            if time.monotonic() > deadline:
                break
        else:
            code = child.end()
    return parse_device(python, answers, child.tail, code)
