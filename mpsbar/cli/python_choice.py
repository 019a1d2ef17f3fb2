"""Which Python a verb means: the one that is named, else that of the active environment, else one
of those found, in one order for all verbs; a verb that changes an environment asks before that."""

import os
import shutil
import sys
from pathlib import Path

from mpsbar.agent.frameworks import join_labels
from mpsbar.cli.arguments import find_python
from mpsbar.cli.output import is_terminal
from mpsbar.core.errors import UserError

ACTIVE = "the active environment's"
DEFAULT = f"default: {ACTIVE}, else the first found"


def find_active() -> str | None:
    """The Python of the environment that was activated in this shell."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if prefix := os.environ.get(variable):
            return str(Path(prefix, "bin", "python"))
    return None


def find_all() -> list[str]:
    """Every Python found: the active environment's first, then those in use."""
    from mpsbar.cli.status import read_snapshot
    from mpsbar.doctor.pythons import find_pythons
    from mpsbar.workers.environments import read_enabled

    return find_pythons(read_snapshot(), read_enabled())


def require_named(given: str) -> str:
    python = find_python(given)
    if shutil.which(python) is None:
        raise UserError(f"{given} does not exist or can't be run")
    return python


def choose_for_enable(given: str | None) -> str:
    """The one to connect; without an active environment a person chooses from those found."""
    if given is not None:
        return require_named(given)
    if active := find_active():
        return active
    from mpsbar.cli.status import read_snapshot
    from mpsbar.doctor.pythons import find_usable
    from mpsbar.workers.environments import read_enabled

    pythons = find_usable(read_snapshot(), read_enabled())
    if not pythons:
        raise UserError(
            f"No environment is active, and no Python with {join_labels('or')} was found. "
            "Activate one, or name it: mpsbar enable --python PATH"
        )
    heading = f"No environment is active. Pythons found with {join_labels('or')}:"
    return _choose(heading, pythons, "enable")


def choose_for_disable(given: str | None) -> str:
    """The same for disable, from those that are enabled."""
    from mpsbar.workers.environments import read_enabled

    if given is not None:
        return require_named(given)
    if active := find_active():
        return active
    pythons = read_enabled()
    if not pythons:
        raise UserError("No environment is active, and none is enabled")
    return _choose("No environment is active. Enabled:", pythons, "disable")


def _choose(heading: str, pythons: list[str], verb: str) -> str:
    lines = [heading, *(f"{number:3}  {_short(p)}" for number, p in enumerate(pythons, 1))]
    if not is_terminal():
        raise UserError("\n".join([*lines, f"To {verb} one: mpsbar {verb} --python PATH"]))
    print("\n".join(lines))
    try:
        answer = input(f"{verb.capitalize()} which (1 to {len(pythons)}, Return for none)? ")
    except EOFError:
        answer = ""
    if answer.strip() in map(str, range(1, len(pythons) + 1)):
        return pythons[int(answer) - 1]
    wrong = f"{answer.strip()[:40]!r} is not on the list: " if answer.strip() else ""
    raise UserError(f"{wrong}nothing was changed")


def say_choice(python: str) -> None:
    """Say which Python was taken where none was named."""
    why = ACTIVE if python == find_active() else "the first found that could be used"
    print(f"mpsbar: used {_short(python)} ({why}); --python PATH for another", file=sys.stderr)


def _short(python: str) -> str:
    from mpsbar.ui.text.wording import shorten_home

    return shorten_home(python, str(Path.home()))
