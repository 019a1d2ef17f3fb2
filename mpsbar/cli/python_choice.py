"""Chooses the Python a command works on, in the same order for all commands.

It is the Python that is named, else the active environment's, else one that was found; a command
that changes an environment asks before it takes a found one.
"""

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from mpsbar.agent.frameworks import join_labels
from mpsbar.cli.arguments import find_python
from mpsbar.cli.output import INTERRUPTED, is_terminal, print_stderr
from mpsbar.core.errors import UserError
from mpsbar.language import _

if TYPE_CHECKING:
    from mpsbar.core.dtype_results import Probe
    from mpsbar.core.snapshot import Snapshot
    from mpsbar.dtypes.deep_results import DeepProbe

DEFAULT = _("default: the active environment's, else the first found with torch")


def find_candidates(named: str | None, snapshot: "Snapshot | None" = None) -> list[str]:
    """Finds the Pythons to try: the one that is named, else the active environment's first."""
    from mpsbar import snapshot as read_snapshot
    from mpsbar.doctor.pythons import find_pythons
    from mpsbar.workers.environments import read_enabled

    if named is not None:
        return [find_python(named)]
    return find_pythons(snapshot or read_snapshot(), read_enabled())


def require_named(given: str) -> str:
    python = find_python(given)
    if shutil.which(python) is None:
        raise UserError(_("{python} does not exist or can't be run").format(python=given))
    return python


def choose_for_enable(given: str | None) -> str:
    """Chooses the Python to connect; without an active environment a person chooses."""
    if given is not None:
        return require_named(given)
    if active := _find_active():
        return active
    from mpsbar import snapshot as read_snapshot
    from mpsbar.doctor.pythons import find_usable
    from mpsbar.workers.environments import read_enabled

    pythons = find_usable(read_snapshot(), read_enabled())
    if not pythons:
        raise UserError(
            _(
                "No environment is active, and no Python with {frameworks} was found. "
                "Activate one, or name it: mpsbar enable --python PATH"
            ).format(frameworks=join_labels(_("or")))
        )
    heading = _("No environment is active. Pythons found with {frameworks}:").format(
        frameworks=join_labels(_("or"))
    )
    how = _("To enable one: mpsbar enable --python PATH")
    return _choose(heading, pythons, how, _("Enable which (1 to {n}, Return for none)? "))


def choose_for_disable(given: str | None) -> str:
    """Chooses the Python to disconnect; without an active environment a person chooses."""
    from mpsbar.workers.environments import read_enabled

    if given is not None:
        return require_named(given)
    if active := _find_active():
        return active
    pythons = read_enabled()
    if not pythons:
        raise UserError(_("No environment is active, and none is enabled"))
    heading = _("No environment is active. Enabled:")
    how = _("To disable one: mpsbar disable --python PATH")
    return _choose(heading, pythons, how, _("Disable which (1 to {n}, Return for none)? "))


def _choose(heading: str, pythons: list[str], how: str, question: str) -> str:
    lines = [heading, *(f"{number:3}  {_short(p)}" for number, p in enumerate(pythons, 1))]
    if not is_terminal():
        raise UserError("\n".join([*lines, how]))
    print("\n".join(lines))
    try:
        answer = input(question.format(n=len(pythons)))
    except EOFError:
        answer = ""
    if answer.strip() in map(str, range(1, len(pythons) + 1)):
        return pythons[int(answer) - 1]
    if not answer.strip():
        raise UserError(_("nothing was changed"))
    wrong = _("{answer!r} is not on the list: nothing was changed")
    raise UserError(wrong.format(answer=answer.strip()[:40]))


def print_choice(python: str) -> None:
    """Prints which Python was used, for a command where none was named."""
    if python == _find_active():
        text = _("mpsbar: used {python} (the active environment's); --python PATH for another")
    else:
        text = _(
            "mpsbar: used {python} (the first found that could be used); --python PATH for another"
        )
    print_stderr(text.format(python=_short(python)))


def report_failure(probe: "Probe | DeepProbe", options: argparse.Namespace) -> int:
    """Reports why a probe measured nothing; returns the exit code if it was canceled."""
    from mpsbar.dtypes.text import say_end

    if probe.ended != "cancelled":
        refuse_python(options, probe.ended, say_end(probe))
    print_stderr(_("mpsbar: canceled before anything was measured"))
    return INTERRUPTED


def refuse_python(options: argparse.Namespace, ended: str, sentence: str) -> NoReturn:
    """Reports why nothing was measured. `ended` is how a probe or a comparison ended.

    The exit code is 2 if the named file is no Python, else 1.
    """
    from mpsbar.dtypes.text import say_no_torch_found

    is_named = options.python is not None
    if is_named and ended in ("no_python", "not_python"):
        options.refuse(sentence)
    is_found = is_named or ended not in ("no_torch", "no_python")
    raise UserError(sentence if is_found else say_no_torch_found())


def _short(python: str) -> str:
    from mpsbar.ui.text.wording import shorten_home

    return shorten_home(python, str(Path.home()))


def _find_active() -> str | None:
    """Returns the Python of the environment that is active in this shell."""
    from mpsbar.system.installed_pythons import list_active

    return next(list_active(), None)
