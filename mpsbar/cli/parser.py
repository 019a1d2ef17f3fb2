"""The command line: arguments in, exit code out; no traceback ever reaches a person."""

import argparse
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from mpsbar import __version__
from mpsbar.agent.frameworks import join_labels
from mpsbar.core.errors import UserError

_INTERRUPTED = 130
_FRAMEWORKS = join_labels("and")


class _Parser(argparse.ArgumentParser):
    """Bad arguments are one clear line and exit code 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def run(arguments: Sequence[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without "·" is no reason to fail
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.verb and (options.bar or options.interval):
        parser.error(f"--bar and --interval are for the menu bar, not for {options.verb}")
    verb = importlib.import_module(f"mpsbar.cli.{options.verb or 'start'}")
    try:
        code = verb.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our pipe has gone: nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except UserError as complaint:
        print(f"mpsbar: {complaint}", file=sys.stderr)
        return 1
    except Exception as error:  # noqa: BLE001 - the last line of defence
        if os.environ.get("MPSBAR_DEBUG", "") not in ("", "0"):
            traceback.print_exc()
        else:
            text = f"mpsbar: internal error: {type(error).__name__}: {error}"
            print(f"{text} (MPSBAR_DEBUG=1 shows where)", file=sys.stderr)
        return 1
    return int(code)


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="mpsbar",
        description=f"Who holds my GPU memory, and can I get it back? For {_FRAMEWORKS}. Without "
        "a verb: the menu bar on a Mac with a screen, live in the terminal (as top) elsewhere, one "
        "look (as status) where there is no terminal.",
        epilog="examples:\n  mpsbar\n  mpsbar --bar gpu --interval 5\n"
        "  mpsbar run python train.py\n  mpsbar status\n  mpsbar free --all",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mpsbar {__version__}")
    parser.add_argument(
        "--bar", choices=("memory", "gpu", "dot", "icon"), help="what the menu bar shows, this time"
    )
    parser.add_argument(
        "--interval", metavar="SECONDS", type=_seconds, help="between two looks, this time"
    )
    parser.set_defaults(json=False, watch=None, every=None, format=None)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=_Parser)
    _add_status(verbs)
    _add_top(verbs)
    _add_free(verbs)
    _add_run(verbs)
    _add_enable(verbs)
    _add_probe(verbs)
    _add_doctor(verbs)
    _add_report(verbs)
    _add_export(verbs)
    _add_demo(verbs)
    _add_login(verbs)
    _add_config(verbs)
    return parser


def _add_status(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    status = verbs.add_parser(
        "status",
        help=f"one look at this computer and its {_FRAMEWORKS} processes",
        description=f"One look at this computer, its {_FRAMEWORKS} processes and, where they are "
        "connected, what their allocators hold.",
        epilog="examples:\n  mpsbar status --watch 2\n"
        "  mpsbar status --json | jq '.workers[].held'",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shape = status.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    shape.add_argument("--format", metavar="TEXT", help="one line: '{held} {gpu}', for status bars")
    status.add_argument(
        "--watch",
        metavar="SECONDS",
        nargs="?",
        type=_seconds,
        const=2.0,
        help="again and again until Ctrl-C (default: every 2); with --json one line each",
    )


def _add_top(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    top = verbs.add_parser(
        "top",
        help="the same, live: choose a process, free its cache, see its memory over time",
        description=f"This computer and its {_FRAMEWORKS} processes, live in the terminal: what "
        "each holds, its memory over the last minutes, and keys to free, look at and stop. ? shows "
        "all keys. Needs textual; without it, or without a terminal, it is one look, as status.",
        epilog="examples:\n  mpsbar top\n  mpsbar top --interval 5\n  ssh -t mac mpsbar top\n"
        "  NO_COLOR=1 mpsbar top",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # Not the name of the menu bar's flag, which the parser before this one owns.
    top.add_argument(
        "--interval",
        dest="every",
        metavar="SECONDS",
        type=_seconds,
        help="between two looks (default: 2, or as set; at least 5 on battery)",
    )


def _add_free(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    free = verbs.add_parser(
        "free",
        help="give the caches of workers back",
        description="Give the caches of workers back. Live tensors stay; the process pauses "
        "briefly, and its next steps may be slower. Exit code 0: all freed (0 bytes too), "
        "1: one was busy or refused, 2: wrong arguments.",
        epilog="examples:\n  mpsbar free 4711\n  mpsbar free --all",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    free.add_argument(
        "pids", metavar="PID", nargs="*", type=_pid, help="as `mpsbar status` shows it"
    )
    free.add_argument("--all", action="store_true", help="every connected worker")
    free.add_argument("--json", action="store_true", help="one JSON object with all outcomes")
    free.add_argument(
        "--timeout", metavar="S", type=_seconds, default=30.0, help="seconds to wait (default: 30)"
    )
    free.set_defaults(refuse=free.error)


def _add_run(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    run = verbs.add_parser(
        "run",
        help=f"run a command whose {_FRAMEWORKS} processes are seen",
        description="Run a command; every Python process in it that imports "
        f"{join_labels('or')} is seen. No code is changed, and the command is started as "
        "without mpsbar.",
        epilog="examples:\n  mpsbar run python train.py --lr 0.1\n"
        "  mpsbar run torchrun --nproc-per-node 2 train.py",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("command", metavar="CMD …", nargs=argparse.REMAINDER)
    run.set_defaults(refuse=run.error)


def _add_enable(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    enable = verbs.add_parser(
        "enable",
        help=f"have every {_FRAMEWORKS} process of an environment seen",
        description="Have every process of an environment that imports "
        f"{join_labels('or')} seen, from its next start on. Opt-in, for one environment; "
        "undone by mpsbar disable.",
        epilog="examples:\n  mpsbar enable --python ~/venv/bin/python\n  mpsbar enable --jupyter\n"
        "  mpsbar enable --list",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    disable = verbs.add_parser(
        "disable",
        help="undo mpsbar enable",
        description="Take out of an environment what mpsbar enable put there.",
        epilog="example:\n  mpsbar disable --python ~/venv/bin/python",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    choice = enable.add_mutually_exclusive_group()
    choice.add_argument("--list", action="store_true", help="the enabled environments")
    choices = {enable: choice, disable: disable.add_mutually_exclusive_group()}
    for group in choices.values():
        group.add_argument("--python", metavar="PATH", help="default: the active environment's")
        group.add_argument("--jupyter", action="store_true", help="the IPython profile instead")
    choices[disable].add_argument("--all", action="store_true", help="all that were enabled")


def _add_probe(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    probe = verbs.add_parser(
        "probe",
        help="which dtypes work here, measured in seconds",
        description="Tries 18 operations in 14 dtypes on a device, and looks for known bugs that "
        "silently give wrong numbers: in a short-lived process of your own Python, with small "
        "tensors, at the lowest priority, with at most 256 MB of memory above what torch itself "
        "takes. The result is kept for this Python, torch, system and device. Exit code 0: all "
        "as expected, 1: a surprise was found or it could not be measured, 2: wrong arguments, "
        "130: cancelled by Ctrl-C.",
        epilog="examples:\n  mpsbar probe\n  mpsbar probe --python ~/venv/bin/python --device mps\n"
        "  mpsbar probe --json > before.json\n  mpsbar probe --against before.json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    probe.add_argument(
        "--device",
        choices=("auto", "mps", "cuda", "cpu"),
        default="auto",
        help="default: cuda, else mps, else cpu",
    )
    probe.add_argument(
        "--python",
        metavar="PATH",
        help="default: that of a running torch process, else the first found with torch",
    )
    probe.add_argument("--json", action="store_true", help="one JSON object with every cell")
    probe.add_argument(
        "--against", metavar="FILE", help="say what changed since this result (of --json)"
    )
    probe.add_argument(
        "--force", action="store_true", help="also while memory pressure is critical"
    )
    probe.set_defaults(refuse=probe.error)


def _add_doctor(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    doctor = verbs.add_parser(
        "doctor",
        help="whether torch works here, and why not",
        description="Looks at the Pythons of running torch processes, of enabled environments, the "
        "active one and python3: torch's version, whether MPS is built and available and why not, "
        "the device a script would get, and PYTORCH_* variables that do harm. Each is asked by a "
        "short-lived process of its own. Exit code 0: all well, 1: a problem was found or the "
        "Python named has no torch, 2: wrong arguments.",
        epilog="examples:\n  mpsbar doctor\n  mpsbar doctor --python ~/venv/bin/python\n"
        "  mpsbar doctor --json | jq '.pythons[].chosen'",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    doctor.add_argument("--json", action="store_true", help="one JSON object instead of text")
    what = doctor.add_mutually_exclusive_group()
    what.add_argument("--python", metavar="PATH", help="look at this one only")
    what.add_argument(
        "--self-test",
        action="store_true",
        help="mpsbar itself instead: what works, what to look at",
    )


def _add_report(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    report = verbs.add_parser(
        "report",
        help="everything on one HTML page",
        description="Writes one HTML page that needs nothing else: memory over time as far as it "
        "was recorded, connected and unconnected processes, runs that ended, the last dtype "
        "probe, what to do next, and diagnostics to paste into a bug report. Prints where it is. "
        "Exit code 0: written, 1: not written or not opened, 2: wrong arguments.",
        epilog="examples:\n  mpsbar report --open\n  mpsbar report -o memory.html",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.add_argument(
        "-o", "--output", metavar="FILE", help="default: report.html among mpsbar's own files"
    )
    report.add_argument("--open", action="store_true", help="open it in the browser")


def _add_export(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    from mpsbar.cli import export

    parser = verbs.add_parser(
        "export",
        help="serve metrics to Prometheus",
        description=export.DESCRIPTION,
        epilog="examples:\n  " + "\n  ".join(export.EXAMPLES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    export.add_arguments(parser)


def _add_demo(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    demo = verbs.add_parser(
        "demo",
        help="mpsbar at work, with small real workers",
        description="Starts small real workers. On a terminal they are shown live, as by mpsbar "
        "top; otherwise the menu as text, a cache freed, and the menu again.",
        epilog="examples:\n  mpsbar demo\n  mpsbar demo --recorded m1-8gb",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo.add_argument(
        "--recorded",
        metavar="NAME",
        nargs="?",
        const="m1max-64gb",
        help="a recorded Mac instead, its workers invented (default: m1max-64gb)",
    )


def _add_login(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    login = verbs.add_parser(
        "login",
        help="start mpsbar at login, or no more",
        description="Start mpsbar at login: as a login item of the app, as a LaunchAgent where "
        "it was installed as a tool, in the desktop's autostart folder on Linux. Exit code of on "
        "and off 0: it is so now, 1: it is not; of status 0: on, 1: off; 2: wrong arguments.",
        epilog="examples:\n  mpsbar login on\n  mpsbar login status && echo yes",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    login.add_argument("what", metavar="on|off|status", choices=("on", "off", "status"))


def _add_config(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    config = verbs.add_parser(
        "config",
        help="the settings: where they are, what they are, what is wrong",
        description="path: where the settings file is, or would be. print: the settings in force, "
        "and where each comes from: default, file or an environment variable, the later before "
        "the earlier. validate: every mistake in them, one a line. Exit code 0: no mistake, "
        "1: mistakes (validate only), 2: wrong arguments.",
        epilog='examples:\n  $EDITOR "$(mpsbar config path)"\n  mpsbar config validate\n'
        "  MPSBAR_INTERVAL=5 mpsbar config print",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    choices = ("path", "print", "validate")
    config.add_argument("what", metavar="path|print|validate", choices=choices)


def _pid(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"not a process id: {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(f"not a number of seconds between 0 and 3600: {text!r}")
    return value
