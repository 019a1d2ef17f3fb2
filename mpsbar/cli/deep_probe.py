"""mpsbar probe --deep: tests every torch operation in every dtype, in the user's own Python."""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mpsbar.cli.output import (
    INTERRUPTED,
    print_stderr,
    run_cancellable,
    save_result,
    show_progress,
)
from mpsbar.cli.python_choice import print_choice, report_failure
from mpsbar.language import _

if TYPE_CHECKING:
    from mpsbar.core.dtype_results import Progress
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
        if probe.ended == "ok":
            options.refuse(
                _("no torch operation matches {pattern!r}; try '*matmul*'").format(
                    pattern=options.only
                )
            )
        return report_failure(probe, options)
    if options.python is None:
        print_choice(probe.python)
    if runner.problem is not None:
        print_stderr(
            _("mpsbar: couldn't save the results: {problem}").format(problem=runner.problem)
        )
    file, is_saved = save_result(lambda: write_deep_result(probe))
    if options.csv:
        print(render_csv(probe), end="")
    elif options.json:
        print(json.dumps({**build_deep_record(probe), **build_deep_changes(before, probe)}))
    else:
        print(shorten_home(render_deep(probe, style, file, before), str(Path.home())))
    if probe.ended == "cancelled":
        if options.only is None and runner.problem is None:
            print_stderr(_("mpsbar: run the same command again to continue"))
        return INTERRUPTED
    return 0 if is_saved and probe.ended == "ok" and not probe.find_news("worse") else 1


class _ProgressDisplay:
    """Draws the progress and the time left, which it estimates from this run's own rate."""

    def __init__(self, resumed: Callable[[], int]) -> None:
        self._resumed = resumed
        self._began: float | None = None

    def show(self, progress: "Progress") -> None:
        from mpsbar.dtypes.deep_text import say_deep_progress
        from mpsbar.dtypes.text import draw_bar

        left = None
        if progress.total is not None:
            now = time.monotonic()
            self._began = self._began or now
            spent, done = now - self._began, progress.done - self._resumed()
            if spent > _RATE_SECONDS and done > 0:
                left = spent / done * max(0, progress.total - progress.done)
        text = say_deep_progress(progress.done, progress.total, left)
        show_progress(f"{draw_bar(progress.part)} {text}")
