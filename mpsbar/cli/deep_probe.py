"""mpsbar probe --deep: every operation of torch in every dtype, in the user's own Python."""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mpsbar.cli.output import INTERRUPTED, complain, run_cancellable, save_result, show_progress
from mpsbar.cli.python_choice import say_choice
from mpsbar.language import _

if TYPE_CHECKING:
    from mpsbar.core.dtype_results import Progress
    from mpsbar.dtypes.deep_results import DeepProbe
    from mpsbar.dtypes.table import TableStyle

_RATE_SECONDS = 2.0  # before that the time left is a guess


def run(options: argparse.Namespace, pythons: list[str], style: "TableStyle") -> int:
    from mpsbar.dtypes.deep_files import read_deep_result, write_deep_result
    from mpsbar.dtypes.deep_results import build_deep_changes, build_deep_record
    from mpsbar.dtypes.deep_runner import DeepRunner
    from mpsbar.dtypes.deep_text import render_csv, render_deep
    from mpsbar.ui.text.wording import shorten_home

    before = (
        None if options.against is None else read_deep_result(Path(options.against).expanduser())
    )
    runner = DeepRunner(pythons, options.device, only=options.only, restart=options.restart)
    progress = _ProgressDisplay(lambda: runner.resumed)
    probe = run_cancellable(lambda: runner.run(progress.show), runner.cancel)
    if not probe.cells:
        return _complain(probe, options)
    if options.python is None:
        say_choice(probe.python)
    if runner.problem is not None:
        complain(_("mpsbar: couldn't save the results: {problem}").format(problem=runner.problem))
    file, is_saved = save_result(lambda: write_deep_result(probe))
    if options.csv:
        print(render_csv(probe), end="")
    elif options.json:
        print(json.dumps({**build_deep_record(probe), **build_deep_changes(before, probe)}))
    else:
        print(shorten_home(render_deep(probe, style, file, before), str(Path.home())))
    if probe.ended == "cancelled":
        if options.only is None and runner.problem is None:
            complain(_("mpsbar: run the same command again to continue"))
        return INTERRUPTED
    return 0 if is_saved and probe.ended == "ok" and not probe.find_news("worse") else 1


class _ProgressDisplay:
    """Draws the progress with the time left, which is known from what this run has done."""

    def __init__(self, resumed: Callable[[], int]) -> None:
        self._resumed = resumed
        self._began: float | None = None

    def show(self, progress: "Progress") -> None:
        from mpsbar.dtypes.deep_text import draw_bar, say_deep_progress

        left = None
        if progress.total is not None:
            now = time.monotonic()
            self._began = self._began or now
            spent, done = now - self._began, progress.done - self._resumed()
            if spent > _RATE_SECONDS and done > 0:
                left = spent / done * max(0, progress.total - progress.done)
        bar = draw_bar(progress.done, progress.total)
        show_progress(f"{bar} {say_deep_progress(progress.done, progress.total, left)}")


def _complain(probe: "DeepProbe", options: argparse.Namespace) -> int:
    from mpsbar.core.dtype_results import Probe
    from mpsbar.core.errors import UserError
    from mpsbar.dtypes.text import say_end, say_no_torch_found

    if probe.ended == "cancelled":
        complain(_("mpsbar: cancelled before anything was measured"))
        return INTERRUPTED
    if probe.ended == "ok":
        options.refuse(
            _("no operation of torch matches {pattern!r}; try '*matmul*'").format(
                pattern=options.only
            )
        )
    whole = Probe(probe.python, probe.ended, torch=probe.torch, device=probe.device,
                  error=probe.error)  # fmt: skip
    if options.python is not None and probe.ended in ("no_python", "not_python"):
        options.refuse(say_end(whole))
    is_found = options.python is not None or probe.ended not in ("no_torch", "no_python")
    raise UserError(say_end(whole) if is_found else say_no_torch_found())
