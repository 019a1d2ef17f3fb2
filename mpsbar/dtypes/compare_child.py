"""The child process of `mpsbar compare FILE.py:make`: loads the user's file, compares its model.

A script of its own for anybody's Python (3.9 and newer) with torch. The plan comes as one JSON line
on stdin: the texts of mpsbar/dtypes/compare, the file, the function, and the options.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
import traceback
import types
from typing import Any

from mpsbar.system.child_answers import send, take_stdout

MARK = "\x1empsbar-compare "
PACKAGE = "mpsbar_compare"
_PART = 1 << 16  # of a long result: a line has a limit
_PROGRESS_SECONDS = 0.1


def main() -> None:
    wire = take_stdout(instead=2)  # what the user's file prints is no answer
    plan = json.loads(sys.stdin.readline())
    if importlib.util.find_spec("torch") is None:
        send(wire, MARK, "no_torch", {})
        return
    try:
        model, args, kwargs = load_subject(plan["file"], plan["function"])
    except BaseException as error:  # noqa: BLE001 - also a SystemExit of the user's file
        text = "".join(traceback.format_exception_only(type(error), error)).strip()
        send(wire, MARK, "failed", {"text": text, "trace": _shorten_trace(plan["file"])})
        return
    send(wire, MARK, "loaded", {})
    _send_result(wire, "end", _compare(wire, plan, model, args, kwargs))


def _send_result(wire: int, stage: str, result: str) -> None:
    """Sends a result in parts, then whether it is the end or what is known so far."""
    for start in range(0, len(result), _PART):
        send(wire, MARK, "part", {"text": result[start : start + _PART]})
    send(wire, MARK, stage, {})


def _compare(wire: int, plan: dict[str, Any], model: Any, args: Any, kwargs: Any) -> str:
    compare = load_package(plan["texts"]).compare
    last = [0.0]
    at = [""]

    def announce_dtype(name: str, done: int, total: int) -> None:
        """Announces each dtype, so that the runner knows in which one Python crashed."""
        if name != at[0] or time.monotonic() - last[0] > _PROGRESS_SECONDS:
            last[0], at[0] = time.monotonic(), name
            send(wire, MARK, "progress", {"name": name, "done": done, "total": total})

    options = {key: value for key, value in plan["options"].items() if value is not None}

    def keep(result: Any) -> None:
        """Sends what is known so far: a crash in the next dtype does not take it away."""
        _send_result(wire, "so_far", result.to_json())

    result = compare(model, *args, **kwargs, **options, on_progress=announce_dtype, on_partial=keep)
    return str(result.to_json())


def load_package(texts: list[list[str]]) -> Any:
    """Loads the files of mpsbar/dtypes/compare as a package, in the order of their imports."""
    package = types.ModuleType(PACKAGE)
    package.__path__ = []
    sys.modules[PACKAGE] = package
    module = package
    for name, text in texts:
        module = types.ModuleType(f"{PACKAGE}.{name}")
        module.__package__ = PACKAGE
        sys.modules[module.__name__] = module
        exec(compile(text, f"mpsbar/dtypes/compare/{name}.py", "exec"), vars(module))  # noqa: S102 - our own
    return module


def load_subject(file: str, function: str) -> tuple[Any, Any, Any]:
    """Returns what FUNCTION of the file returns: (model, inputs), or (step, model, batch, …)."""
    folder = os.path.dirname(os.path.abspath(file))  # noqa: PTH100, PTH120
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.argv = [file]
    name = os.path.splitext(os.path.basename(file))[0]  # noqa: PTH119, PTH122
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    make = getattr(module, function, None)
    if not callable(make):
        raise AttributeError(f"{os.path.basename(file)} has no function {function}()")  # noqa: PTH119
    return split_result(make(), function)


def split_result(made: Any, function: str) -> tuple[Any, Any, Any]:
    if not isinstance(made, tuple) or len(made) < 2 or not callable(made[0]):
        raise TypeError(f"{function}() must return (model, inputs)")
    model, *rest = made
    if len(rest) == 1 and isinstance(rest[0], (tuple, list)):
        return model, tuple(rest[0]), {}
    if len(rest) == 1 and hasattr(rest[0], "keys"):
        return model, (), {key: rest[0][key] for key in rest[0].keys()}  # noqa: SIM118 - BatchEncoding
    return model, tuple(rest), {}


def _shorten_trace(file: str) -> list[str]:
    """Keeps only the lines of the user's own file."""
    frames = traceback.extract_tb(sys.exc_info()[2])
    own = os.path.realpath(file)
    return [f"line {f.lineno}: {f.line}" for f in frames if os.path.realpath(f.filename) == own][
        -3:
    ]


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # all answers are sent; a crash of torch at exit does not matter
