"""mpsbar probe: which dtypes work here, measured in somebody's own Python."""

import argparse
import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mpsbar.cli.doctor import find_named
from mpsbar.cli.status import is_coloured
from mpsbar.core.dtype_results import Probe, Progress
from mpsbar.core.errors import UserError
from mpsbar.core.snapshot import Snapshot
from mpsbar.doctor.pythons import find_pythons
from mpsbar.dtypes.preconditions import find_objections
from mpsbar.dtypes.results import read_result, write_result
from mpsbar.dtypes.runner import Runner
from mpsbar.dtypes.summary import build_probe, draw_progress
from mpsbar.dtypes.table import TableStyle, render_probe
from mpsbar.dtypes.text import say_end, say_none_found
from mpsbar.dtypes.verdicts import find_changes, find_surprises
from mpsbar.monitor import Monitor
from mpsbar.ui.text.wording import shorten_home
from mpsbar.workers.environments import read_enabled

_INTERRUPTED = 130


def run(options: argparse.Namespace) -> int:
    before = None if options.against is None else read_result(Path(options.against).expanduser())
    snapshot = _read_snapshot()
    _check_moment(snapshot, options.force)
    named = options.python is not None
    pythons = [find_named(options.python)] if named else find_pythons(snapshot, read_enabled())
    probe = _probe(Runner(pythons, options.device))
    if not probe.cells:
        return _complain(probe, options, named)
    kept, is_kept = _keep(probe)
    changes = None if before is None else find_changes(before, probe)
    if options.json:
        print(json.dumps(build_probe(probe, changes)))
    else:
        print(shorten_home(render_probe(probe, _look(), kept, changes), str(Path.home())))
    if probe.ended == "cancelled":
        return _INTERRUPTED
    return 0 if is_kept and probe.ended == "ok" and not find_surprises(probe) else 1


def _read_snapshot() -> Snapshot:
    monitor = Monitor()
    try:
        return monitor.read_once()
    finally:
        monitor.close()


def _check_moment(snapshot: Snapshot, force: bool) -> None:
    """Warn of a busy GPU; refuse when memory is about to run out."""
    for objection in find_objections(snapshot):
        if objection.is_refusal and not force:
            raise UserError(f"{objection.text}; --force probes all the same")
        print(f"mpsbar: {objection.text}", file=sys.stderr)


def _probe(runner: Runner) -> Probe:
    """Ctrl-C ends the throwaway, and what was measured until then is shown."""
    with ThreadPoolExecutor(1, thread_name_prefix="mpsbar-probe") as pool:
        running = pool.submit(runner.run, _show_progress)
        try:
            return running.result()
        except KeyboardInterrupt:
            runner.cancel()
            return running.result()
        finally:
            runner.cancel()
            _show_progress(None)


def _show_progress(progress: Progress | None) -> None:
    """On a terminal, in one line that is gone at the end."""
    if sys.stderr is not None and sys.stderr.isatty():
        text = "" if progress is None else draw_progress(progress)
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def _complain(probe: Probe, options: argparse.Namespace, named: bool) -> int:
    if probe.ended == "cancelled":
        print("mpsbar: cancelled before anything was measured", file=sys.stderr)
        return _INTERRUPTED
    if named and probe.ended in ("no_python", "not_python"):
        options.refuse(say_end(probe))
    is_found = named or probe.ended not in ("no_torch", "no_python")
    raise UserError(say_end(probe) if is_found else say_none_found())


def _keep(probe: Probe) -> tuple[str | None, bool]:
    """Where; and whether all is well. What cannot be kept is shown all the same."""
    try:
        file = write_result(probe)
    except OSError as error:
        text = error.strerror or str(error)
        print(f"mpsbar: the result could not be kept: {text}", file=sys.stderr)
        return None, False
    return (None if file is None else str(file)), True


def _look() -> TableStyle:
    """Signs where a person looks and they can be drawn; words in a pipe."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower()
    with_signs = sys.stdout.isatty() and encoding.replace("-", "") == "utf8"
    return TableStyle(with_signs, is_coloured(), shutil.get_terminal_size((100, 24)).columns)
