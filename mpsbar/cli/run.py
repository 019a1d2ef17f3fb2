"""mpsbar run: become the command, with an environment that connects its processes."""

import argparse
import os
import sys
from pathlib import Path

from mpsbar.agent.frameworks import join_labels

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126  # as a shell says it


DESCRIPTION = (
    f"Runs a command; every Python process in it that imports {join_labels('or')} is connected. "
    "Your code is not changed, and the command starts as it would without mpsbar."
)
EXAMPLES = (
    "mpsbar run python train.py --lr 0.1",
    "mpsbar run torchrun --nproc-per-node 2 train.py",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "mpsbar run [-h] CMD …"
    parser.add_argument(
        "command", metavar="CMD …", nargs=argparse.REMAINDER, help="a command and its arguments"
    )
    parser.set_defaults(refuse=parser.error)


def run(options: argparse.Namespace) -> int:
    from mpsbar.workers.run import why_not_connected

    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        options.refuse("no command given; for example: mpsbar run python train.py")
    if reason := why_not_connected(command, os.environ):
        print(f"mpsbar: not connected: {reason}", file=sys.stderr)
    environ = _build_environment()
    sys.stdout.flush()
    try:
        os.execvpe(command[0], command, environ)  # noqa: S606 - a list
    except FileNotFoundError:
        print(f"mpsbar run: {command[0]}: command not found", file=sys.stderr)
        return _NOT_FOUND
    except OSError as problem:
        advice = f"; mpsbar run python {command[0]} …" if Path(command[0]).suffix == ".py" else ""
        print(f"mpsbar run: {command[0]}: {problem.strerror}{advice}", file=sys.stderr)
        return _NOT_EXECUTABLE


def _build_environment() -> dict[str, str]:
    """In the app with a copy of the agent: other Pythons write bytecode beside what they import."""
    from mpsbar.system.paths import data_folder, is_in_app
    from mpsbar.workers.run import SITE, build_environment, copy_agent

    try:
        site = copy_agent(data_folder()) if is_in_app() else SITE
    except OSError as problem:
        reason = problem.strerror or problem
        print(f"mpsbar: not connected: couldn't copy the agent: {reason}", file=sys.stderr)
        return dict(os.environ)
    return build_environment(os.environ, site)
