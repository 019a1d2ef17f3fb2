"""What must be known of another Python before anything is put into it."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# A cold interpreter on a busy machine; a hang is an answer too.
ASK_SECONDS = 60.0
_APP = ".app/Contents/"
_MARK = "\x1empsbar "
_QUESTION = f"""
import importlib.util, json, os, sys, sysconfig
stdlib = sysconfig.get_path("stdlib")
marked = os.path.exists(os.path.join(stdlib, "EXTERNALLY-MANAGED"))
print({_MARK!r} + json.dumps({{
    "implementation": sys.implementation.name,
    "version": sys.version_info[:2],
    "prefix": sys.prefix,
    "site": sysconfig.get_path("purelib"),
    "managed": marked and sys.prefix == sys.base_prefix,
    "has_mpsbar": importlib.util.find_spec("mpsbar") is not None,
}}))
"""


class EnvironmentProblem(Exception):
    """One sentence on why nothing can be done with this Python."""


@dataclass(frozen=True, slots=True)
class Environment:
    python: str
    version: tuple[int, int]
    prefix: str
    site: Path
    has_mpsbar: bool  # installed by the user, so that no copy of the agent is needed


def read_environment(python: str) -> Environment:
    """Ask `python` itself; EnvironmentProblem if it does not answer or may not be changed."""
    try:
        done = subprocess.run(
            [python, "-I", "-B", "-c", _QUESTION],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=ASK_SECONDS, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise EnvironmentProblem(f"there is no {python}") from None
    except subprocess.TimeoutExpired:
        raise EnvironmentProblem(f"{python} did not answer in {ASK_SECONDS:.0f} s") from None
    except OSError as problem:
        raise EnvironmentProblem(f"{python} cannot be run: {problem.strerror}") from None
    return parse_environment(python, done.stdout)


def parse_environment(python: str, output: str) -> Environment:
    """From what it printed, noise of its start-up files included. Pure."""
    _, mark, answer = output.rpartition(_MARK)
    told = _parse(answer) if mark else None
    if told is None:
        raise EnvironmentProblem(f"{python} is not a Python that can be asked")
    version = (int(told["version"][0]), int(told["version"][1]))
    if told["implementation"] != "cpython" or version < (3, 9):
        name = f"{told['implementation']} {version[0]}.{version[1]}"
        raise EnvironmentProblem(f"{python} is {name}; CPython 3.9 or newer is needed")
    if _APP in f"{told['site']}/":
        raise EnvironmentProblem(
            f"{python} belongs to an app, whose signature does not allow any change"
        )
    if told["managed"]:
        raise EnvironmentProblem(
            f"{python} is managed by the system (EXTERNALLY-MANAGED): "
            "make a venv and enable that, or use mpsbar run"
        )
    return Environment(
        python, version, told["prefix"], Path(told["site"]), bool(told["has_mpsbar"])
    )


def _parse(text: str) -> dict[str, Any] | None:
    try:
        told = json.loads(text.splitlines()[0])
        return told if {"version", "site", "managed"} <= set(told) else None
    except (ValueError, IndexError, TypeError):
        return None
