"""Other Pythons: what `enable` must know about one, and the list of those that were enabled."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpsbar.agent.frameworks import FRAMEWORKS
from mpsbar.core.errors import UserError, reason_of
from mpsbar.core.naming import printable
from mpsbar.core.untrusted import is_whole
from mpsbar.language import _
from mpsbar.system import paths
from mpsbar.system.child_process import ChildAnswer, classify_start, start_child
from mpsbar.system.files import log_refused, read_json_to_change, read_own_json, write_own_json

# Enough for a cold interpreter on a busy machine; one that hangs is refused.
ASK_SECONDS = 60.0
_MAX_BYTES = 1 << 20
_LONGEST_PATH = 1000
_MARK = "\x1empsbar "
_PACKAGES = tuple(framework.module.partition(".")[0] for framework in FRAMEWORKS)
_QUESTION = f"""
import importlib.util, json, os, sys, sysconfig
stdlib = sysconfig.get_path("stdlib")
marked = os.path.exists(os.path.join(stdlib, "EXTERNALLY-MANAGED"))
mpsbar = importlib.util.find_spec("mpsbar")
is_ours = mpsbar is None or os.path.basename(mpsbar.origin or "") == "enabled_mpsbar.py"
print()  # start-up files may have left a line unfinished
print({_MARK!r} + json.dumps({{
    "implementation": sys.implementation.name,
    "version": sys.version_info[:2],
    "prefix": sys.prefix,
    "site": sysconfig.get_path("purelib"),
    "managed": marked and sys.prefix == sys.base_prefix,
    "has_mpsbar": not is_ours,
    "frameworks": [n for n in {_PACKAGES} if importlib.util.find_spec(n) is not None],
}}))
"""


class UnusablePythonError(UserError):
    """One sentence on why nothing can be done with this Python."""


@dataclass(frozen=True, slots=True)
class Environment:
    python: str
    version: tuple[int, int]
    prefix: str
    site: Path
    has_mpsbar: bool  # installed by the user, so that no copy of the agent is needed
    has_framework: bool = True  # False: it would have nothing to show yet


def read_environment(python: str) -> Environment:
    """Asks `python` itself; UnusablePythonError if it does not answer or may not be changed."""
    try:
        answer = _ask(python)
    except (OSError, ValueError) as problem:
        words = {
            "unsafe": _("{python} was not run: {problem}"),
            "no_python": _("{python} does not exist"),
            "not_python": _("{python} can't be run: {problem}"),
        }[classify_start(problem)]
        text = words.format(python=python, problem=reason_of(problem))
        raise UnusablePythonError(text) from None
    return parse_environment(python, answer)


def _ask(python: str) -> ChildAnswer:
    """Returns the last answer of that Python; empty if there was none."""
    answer: ChildAnswer = {}
    with start_child(python, ["-I", "-c", _QUESTION], _MARK) as child:
        child.allow(ASK_SECONDS)
        for answers in child.read_answers():
            answer = answers[-1] if answers else answer
    if child.has_hung:
        raise UnusablePythonError(
            _("{python} did not answer within {seconds:.0f} s").format(
                python=python, seconds=ASK_SECONDS
            )
        )
    return answer


def parse_environment(python: str, answer: ChildAnswer) -> Environment:
    """Checks a Python's answer; UnusablePythonError if it may not be changed. Pure."""
    version, implementation = _parse_version(answer.get("version")), answer.get("implementation")
    prefix, site = _parse_path(answer.get("prefix")), _parse_path(answer.get("site"))
    is_typed = isinstance(implementation, str) and isinstance(answer.get("managed"), bool)
    if version is None or prefix is None or site is None or not is_typed:
        raise UnusablePythonError(_("{python} is not a usable Python").format(python=python))
    if implementation != "cpython" or version < (3, 9):
        name = f"{printable(str(implementation), 40)} {version[0]}.{version[1]}"
        raise UnusablePythonError(
            _("{python} is {name}; CPython 3.9 or later is required").format(
                python=python, name=name
            )
        )
    if ".app/Contents/" in f"{site}/":
        raise UnusablePythonError(
            _("{python} belongs to an app, whose signature does not allow changes").format(
                python=python
            )
        )
    if answer["managed"]:
        raise UnusablePythonError(
            _(
                "{python} is managed by the system (EXTERNALLY-MANAGED): "
                "create a venv and enable that, or use mpsbar run"
            ).format(python=python)
        )
    has_mpsbar, has_framework = answer.get("has_mpsbar") is True, answer.get("frameworks") != []
    return Environment(python, version, prefix, Path(site), has_mpsbar, has_framework)


def _parse_version(value: Any) -> tuple[int, int] | None:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    good = all(is_whole(number, 1000) for number in value)
    return (value[0], value[1]) if good else None


def _parse_path(value: Any) -> str | None:
    """Returns None for what is no absolute path, or would harm a terminal."""
    if not isinstance(value, str) or not value.startswith("/") or len(value) > _LONGEST_PATH:
        return None
    return value if value.isprintable() and ".." not in Path(value).parts else None


def read_enabled() -> list[str]:
    """Returns the enabled Pythons; none if the file cannot be read."""
    return read_own_json(paths.enabled_file(), _MAX_BYTES, _parse_enabled) or []


def _parse_enabled(record: Any) -> list[str]:
    return [python for python in record["pythons"] if isinstance(python, str)]


def remember_enabled(python: str) -> str | None:
    """Adds a Python to the list, which disable and upgrades need; returns the reason where it
    cannot.
    """
    file = paths.enabled_file()
    try:
        enabled = read_json_to_change(file, _MAX_BYTES, _parse_enabled) or []
        _write([*(other for other in enabled if other != python), python])
    except OSError as problem:
        log_refused(file, problem)
        return reason_of(problem)
    return None


def forget_enabled(python: str) -> None:
    """Takes a Python off the list; UnusablePythonError if the list cannot be changed."""
    enabled = read_enabled()
    file = paths.enabled_file()
    try:
        if enabled == [python]:
            file.unlink(missing_ok=True)
        elif python in enabled:
            _write([other for other in enabled if other != python])
    except OSError as problem:
        reason = reason_of(problem)
        raise UnusablePythonError(
            _("{python} is still listed in {file}: {problem}").format(
                python=python, file=file, problem=reason
            )
        ) from None


def _write(pythons: list[str]) -> None:
    write_own_json(paths.enabled_file(), {"schema": 1, "pythons": pythons})
