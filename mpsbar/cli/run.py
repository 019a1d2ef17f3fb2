"""mpsbar run: runs a command with an environment that connects its processes."""

import argparse
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from mpsbar.agent.frameworks import join_labels, join_limitable
from mpsbar.cli.arguments import explain_limit
from mpsbar.cli.output import print_stderr
from mpsbar.core.errors import UserError, reason_of
from mpsbar.language import _

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126  # as in a shell
_BUDGET_SECONDS = 3.0  # the longest wait for Metal's budget
# Python ignores these signals from its start, and exec would pass that on to the command.
_IGNORED_BY_PYTHON = ("SIGPIPE", "SIGXFZ", "SIGXFSZ")


DESCRIPTION = _(
    "Runs a command; every Python process in it that imports {frameworks} is connected. "
    "Your code is not changed, and the command starts as it would without mpsbar. With --limit "
    "each process keeps its {devices} memory below a limit. {meaning}"
).format(
    frameworks=join_labels(_("or")),
    devices=join_limitable(_("or")),
    meaning=explain_limit(is_running=False),
)
EXAMPLES = (
    "mpsbar run python train.py --lr 0.1",
    "mpsbar run --limit 24GB python train.py",
    "mpsbar run --limit 75% python train.py",
    "mpsbar run torchrun --nproc-per-node 2 train.py",
    "mpsbar run --summary python train.py",
    "mpsbar run --summary=json run.json python train.py",
    "PYTORCH_ENABLE_MPS_FALLBACK=1 mpsbar run --explain python train.py",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "mpsbar run [-h] [--limit SIZE] [--explain]\n"
        "                  [--summary | --summary=json FILE] CMD …"
    )
    parser.add_argument(
        "--limit",
        metavar="SIZE",
        help=_("24GB, 1500MB, or a percentage of Metal's budget such as 75%%"),
    )
    parser.add_argument(
        "--summary",
        action="store_true",
        help=_(
            "stay as its parent and print at the end how it ended and what it used; "
            "--summary=json FILE writes that to a file"
        ),
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help=_(
            "count the operations that run on the CPU because MPS lacks them, and say at the end "
            "which, how often, where and what to do; includes --summary"
        ),
    )
    parser.add_argument("--summary-json", metavar="FILE", help=argparse.SUPPRESS)
    accept_json_summary(parser)
    parser.add_argument(
        "user_command",
        metavar="CMD …",
        nargs=argparse.REMAINDER,
        help=_("a command and its arguments"),
    )
    parser.set_defaults(refuse=parser.error)


def accept_json_summary(parser: argparse.ArgumentParser) -> None:
    """Makes `--summary=json FILE` mean `--summary-json FILE`, which argparse cannot do itself."""
    parse = parser.parse_known_args

    def parse_known_args(args=None, namespace=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        args = list(sys.argv[1:] if args is None else args)
        for number, argument in enumerate(args):
            if not argument.startswith("-") or argument == "--":
                break
            if argument == "--summary=json":
                args[number] = "--summary-json"
                break
        return parse(args, namespace)

    parser.parse_known_args = parse_known_args  # type: ignore[method-assign]


def run(options: argparse.Namespace) -> int:
    from mpsbar.workers.run import why_not_connected

    command = options.user_command
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        options.refuse(_("no command given; for example: mpsbar run python train.py"))
    if reason := why_not_connected(command, os.environ):
        print_stderr(_("mpsbar: not connected: {reason}").format(reason=reason))
    environ = _build_environment()
    if options.limit is not None:
        environ |= _limit(options)
    sys.stdout.flush()
    try:
        if options.summary or options.explain or options.summary_json is not None:
            from mpsbar.cli import run_summary

            run = run_summary.run_explained if options.explain else run_summary.run
            return run(command, environ, options.summary_json)
        _exec(command, environ)
    except FileNotFoundError:
        print_stderr(_("mpsbar run: {command}: command not found").format(command=command[0]))
        return _NOT_FOUND
    except OSError as problem:
        advice = f"; mpsbar run python {command[0]} …" if Path(command[0]).suffix == ".py" else ""
        print_stderr(f"mpsbar run: {command[0]}: {problem.strerror}{advice}")
        return _NOT_EXECUTABLE


def _exec(command: list[str], environ: Mapping[str, str]) -> NoReturn:
    """Replaces this process by the command, with the signals that a shell would give it.

    OSError: it can't be run.
    """
    ignored = [getattr(signal, name) for name in _IGNORED_BY_PYTHON if hasattr(signal, name)]
    try:
        for number in ignored:
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(command[0], command, environ)  # noqa: S606 - a list
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


def _limit(options: argparse.Namespace) -> Mapping[str, str]:
    """Returns the variables that limit the command; prints what is not limited, and why."""
    from mpsbar.core.limits import limit_environment, parse_limit
    from mpsbar.system import this_computer

    computer = this_computer()
    computer.wait_for_slow(_BUDGET_SECONDS)
    budget = computer.read_machine().gpu.memory_budget
    try:
        limit = parse_limit(options.limit, budget)
    except UserError as complaint:
        options.refuse(f"--limit: {complaint}")
    limited = limit_environment(os.environ, limit, budget)
    if limited.kept:
        kept = _(" and ").join(f"{name}={os.environ[name]}" for name in limited.kept)
        print_stderr(
            _("mpsbar: {kept} is already set, so --limit does not apply to PyTorch").format(
                kept=kept
            )
        )
    elif not limited.has_budget:
        print_stderr(_("mpsbar: PyTorch is not limited: Metal's budget is not known here"))
    return limited.variables


def _build_environment() -> dict[str, str]:
    """Returns the command's environment. In the app it names a copy of the agent, because other
    Pythons would write bytecode into the app."""
    from mpsbar.workers.run import build_environment, find_site

    try:
        site = find_site()
    except OSError as problem:
        reason = reason_of(problem)
        print_stderr(
            _("mpsbar: not connected: couldn't copy the agent: {reason}").format(reason=reason)
        )
        return dict(os.environ)
    return build_environment(os.environ, site)
