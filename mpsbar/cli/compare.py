"""mpsbar compare: will my model work here? Its file, in a throwaway of its own Python."""

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

from mpsbar.cli.doctor import find_named
from mpsbar.core.errors import UserError
from mpsbar.doctor.pythons import find_pythons
from mpsbar.dtypes.compare.text import plural, render_text
from mpsbar.dtypes.compare_runner import CompareRunner, FileComparison
from mpsbar.monitor import Monitor
from mpsbar.workers.enabled_pythons import read_enabled

_INTERRUPTED = 130
_DTYPES = ("float32", "float16", "bfloat16", "float64", "autocast")


def run(options: argparse.Namespace) -> int:
    file, function = _parse_subject(options)
    chosen = {
        "dtypes": _parse_dtypes(options), "device": options.device,
        "reference": options.reference, "timing": False if options.no_timing else None,
    }  # fmt: skip
    runner = CompareRunner(_find_pythons(options.python), str(file), function, chosen)
    result = _run(runner)
    if result.ended == "cancelled":
        return _INTERRUPTED
    if result.data is None:
        _complain(result, function)
    print(json.dumps(result.data) if options.json else render_text(result.data), end="")
    if options.json:
        print()
    works = all(found["state"] == "works" for found in result.data["dtypes"].values())
    return 0 if works else 1


def _parse_subject(options: argparse.Namespace) -> tuple[Path, str]:
    name, colon, function = options.subject.rpartition(":")
    if not colon or not name or not function.isidentifier():
        options.refuse(f"name a file and a function in it, as model.py:make, not {options.subject!r}")
    file = Path(name).expanduser().absolute()
    if not file.is_file():
        options.refuse(f"no such file: {name}")
    return file, function


def _parse_dtypes(options: argparse.Namespace) -> list[str] | None:
    if options.dtypes is None:
        return None
    names = [name for text in options.dtypes for name in text.split(",") if name]
    for name in names:
        if name.partition(":")[0] not in _DTYPES:
            options.refuse(f"not one of {', '.join(_DTYPES)}: {name!r}")
    return names


def _find_pythons(named: str | None) -> list[str]:
    if named is not None:
        return [find_named(named)]
    monitor = Monitor()
    try:
        return list(find_pythons(monitor.look_once(), read_enabled()))
    finally:
        monitor.close()


def _run(runner: CompareRunner) -> FileComparison:
    """Ctrl-C ends the throwaway: the user's model was loaded there, and nowhere else."""
    with ThreadPoolExecutor(1, thread_name_prefix="mpsbar-compare") as pool:
        running = pool.submit(runner.run, _show_progress)
        try:
            return running.result()
        except KeyboardInterrupt:
            runner.cancel()
            return running.result()
        finally:
            runner.cancel()
            _write("")


def _show_progress(name: str, done: int, total: int) -> None:
    what = f"{done} of {plural(total, 'call')}" if total > 1 else "running"
    _write(f"Comparing… {name}: {what}")


def _write(text: str) -> None:
    """On a terminal, in one line that is gone at the end."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def _complain(result: FileComparison, function: str) -> NoReturn:
    if result.ended == "failed":
        lines = [f"{function}() could not be loaded: {result.text}", *result.trace]
        raise UserError("\n  ".join(lines))
    reasons = {
        "no_torch": "no Python with torch was found; name one with --python",
        "crashed": f"the comparison crashed: {result.text}",
    }
    raise UserError(reasons.get(result.ended, f"{result.python}: {result.text}"))
