"""mpsbar probe: measures which dtypes work here, in the user's own Python."""

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mpsbar import snapshot as read_snapshot
from mpsbar.cli.output import (
    INTERRUPTED,
    is_coloured,
    print_stderr,
    run_cancellable,
    save_result,
    show_progress,
)
from mpsbar.cli.python_choice import DEFAULT, find_candidates, print_choice, report_failure
from mpsbar.core.errors import UserError
from mpsbar.language import _

if TYPE_CHECKING:
    from mpsbar.core.dtype_results import Probe
    from mpsbar.core.snapshot import Snapshot
    from mpsbar.dtypes.table import TableStyle

DESCRIPTION = _(
    "Tries common operations in every dtype on a device, and looks for known bugs that silently "
    "give wrong results: in a short-lived process with your own Python, with small tensors, at the "
    "lowest priority, with at most 256 MB of memory above what torch itself takes. The result is "
    "kept for this Python, torch, system and device. Exit code 0: all as expected, 1: a surprise "
    "was found or it could not be measured, 2: wrong arguments, 130: canceled by Ctrl-C."
)
EXAMPLES = (
    "mpsbar probe",
    "mpsbar probe --python ~/venv/bin/python --device mps",
    "mpsbar probe --json > before.json",
    "mpsbar probe --against before.json",
    "mpsbar probe --deep --only 'linalg.*'",
    "mpsbar probe --deep --csv > operations.csv",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device",
        choices=("auto", "mps", "cuda", "cpu"),
        default="auto",
        help=_("default: cuda, else mps, else cpu"),
    )
    parser.add_argument(
        "--python",
        metavar="PATH",
        help=DEFAULT,
    )
    parser.add_argument(
        "--json", action="store_true", help=_("print one JSON object instead of a table")
    )
    parser.add_argument(
        "--against", metavar="FILE", help=_("show what changed since a result saved with --json")
    )
    parser.add_argument(
        "--no-compile", action="store_true", help=_("don't try torch.compile (on a GPU)")
    )
    parser.add_argument(
        "--deep",
        action="store_true",
        help=_(
            "test every torch operation in 12 dtypes against what torch's own tests expect; "
            "resumes an interrupted probe"
        ),
    )
    parser.add_argument(
        "--only", metavar="PATTERN", help=_("with --deep: operations such as 'nn.functional.conv*'")
    )
    parser.add_argument(
        "--csv", action="store_true", help=_("with --deep: print CSV instead of a table")
    )
    parser.add_argument(
        "--restart", action="store_true", help=_("with --deep: start over instead of resuming")
    )
    parser.add_argument(
        "--force", action="store_true", help=_("probe even while memory pressure is critical")
    )
    parser.set_defaults(refuse=parser.error)


def run(options: argparse.Namespace) -> int:
    from mpsbar.dtypes.results import find_last, read_result, write_result
    from mpsbar.dtypes.summary import build_probe
    from mpsbar.dtypes.table import render_probe
    from mpsbar.dtypes.verdicts import find_changes, find_surprises
    from mpsbar.ui.text.wording import shorten_home

    _check_options(options)
    if options.deep:
        return _run_deep(options)
    before = None if options.against is None else read_result(Path(options.against).expanduser())
    snapshot = read_snapshot()
    _check_moment(snapshot, options.force)
    probe = _probe(find_candidates(options.python, snapshot), options)
    if not probe.cells:
        return report_failure(probe, options)
    if options.python is None:
        print_choice(probe.python)
    last = find_last(probe)
    file, is_saved = save_result(lambda: write_result(probe))
    changes = None if before is None else find_changes(before, probe)
    if options.json:
        print(json.dumps(build_probe(probe, changes, last)))
    else:
        page = render_probe(probe, _table_style(), file, changes, last)
        print(shorten_home(page, str(Path.home())))
    if probe.ended == "cancelled":
        return INTERRUPTED
    return 0 if is_saved and probe.ended == "ok" and not find_surprises(probe) else 1


def _check_moment(snapshot: "Snapshot", force: bool) -> None:
    """Warns of a busy GPU; refuses when memory is about to run out."""
    from mpsbar.dtypes.preconditions import find_objections

    for objection in find_objections(snapshot):
        if objection.is_refusal and not force:
            raise UserError(
                _("{objection}; use --force to run it anyway").format(objection=objection.text)
            )
        print_stderr(f"mpsbar: {objection.text}")


def _check_options(options: argparse.Namespace) -> None:
    for name in ("only", "csv", "restart"):
        if getattr(options, name) and not options.deep:
            options.refuse(_("--{option} requires --deep").format(option=name))
    if options.csv and options.json:
        options.refuse(_("either --json or --csv, not both"))


def _run_deep(options: argparse.Namespace) -> int:
    from mpsbar.cli import deep_probe

    snapshot = read_snapshot()
    _check_moment(snapshot, options.force)
    return deep_probe.run(options, find_candidates(options.python, snapshot), _table_style())


def _probe(pythons: list[str], options: argparse.Namespace) -> "Probe":
    """Runs the probe. Ctrl-C ends it and keeps what was measured until then."""
    from mpsbar.dtypes.runner import ProbeRunner
    from mpsbar.dtypes.summary import draw_progress

    runner = ProbeRunner(pythons, options.device, with_compile=not options.no_compile)
    return run_cancellable(
        lambda: runner.run(lambda done: show_progress(draw_progress(done))), runner.cancel
    )


def _table_style() -> "TableStyle":
    """Chooses symbols on a terminal that can draw them, words in a pipe."""
    from mpsbar.dtypes.table import TableStyle

    encoding = (getattr(sys.stdout, "encoding", None) or "").lower()
    with_signs = sys.stdout.isatty() and encoding.replace("-", "") == "utf8"
    return TableStyle(with_signs, is_coloured(), shutil.get_terminal_size((100, 24)).columns)
