"""What must be known of another Python before anything is put into it."""

import time
from dataclasses import dataclass
from pathlib import Path

from mpsbar.system.child_process import Answer, start_child
from mpsbar.system.ownership import NotTrusted

# A cold interpreter on a busy machine; a hang is an answer too.
ASK_SECONDS = 60.0
_APP = ".app/Contents/"
_MARK = "\x1empsbar "
_QUESTION = f"""
import importlib.util, json, os, sys, sysconfig
stdlib = sysconfig.get_path("stdlib")
marked = os.path.exists(os.path.join(stdlib, "EXTERNALLY-MANAGED"))
print()  # start-up files may have left a line unfinished
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
        answer = _ask(python)
    except NotTrusted as problem:
        raise EnvironmentProblem(f"{python} was not run: {problem}") from None
    except FileNotFoundError:
        raise EnvironmentProblem(f"{python} does not exist") from None
    except OSError as problem:
        raise EnvironmentProblem(f"{python} can't be run: {problem.strerror}") from None
    return parse_environment(python, answer)


def _ask(python: str) -> Answer:
    """What it said last; empty if nothing."""
    answer: Answer = {}
    deadline = time.monotonic() + ASK_SECONDS
    with start_child(python, ["-I", "-c", _QUESTION], _MARK) as child:
        for answers in child.listen():
            answer = answers[-1] if answers else answer
            if time.monotonic() > deadline:
                raise EnvironmentProblem(f"{python} did not answer in {ASK_SECONDS:.0f} s")
    return answer


def parse_environment(python: str, told: Answer) -> Environment:
    """From its answer. Pure."""
    if not {"version", "site", "managed"} <= set(told):
        raise EnvironmentProblem(f"{python} is not a usable Python")
    version = (int(told["version"][0]), int(told["version"][1]))
    if told["implementation"] != "cpython" or version < (3, 9):
        name = f"{told['implementation']} {version[0]}.{version[1]}"
        raise EnvironmentProblem(f"{python} is {name}; CPython 3.9 or later is required")
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
