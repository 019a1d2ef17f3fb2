"""mpsbar run: become the command, with an environment in which torch processes are seen."""

import argparse
import os
import sys
from pathlib import Path

from mpsbar.client.run import build_environment, why_not_connected

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126  # as a shell says it


def run(options: argparse.Namespace) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        options.refuse("name the command to run, for example: mpsbar run python train.py")
    if reason := why_not_connected(command, os.environ):
        print(f"mpsbar: not connected: {reason}", file=sys.stderr)
    sys.stdout.flush()
    try:
        os.execvpe(command[0], command, build_environment(os.environ))  # noqa: S606 - a list
    except FileNotFoundError:
        print(f"mpsbar run: {command[0]}: command not found", file=sys.stderr)
        return _NOT_FOUND
    except OSError as problem:
        advice = f"; mpsbar run python {command[0]} …" if Path(command[0]).suffix == ".py" else ""
        print(f"mpsbar run: {command[0]}: {problem.strerror}{advice}", file=sys.stderr)
        return _NOT_EXECUTABLE
