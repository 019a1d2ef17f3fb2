"""How far a run is, in words."""

import pytest
from samples import make_snapshot, make_training

from mpsbar.core.progress import RunBar, RunProgress
from mpsbar.ui.bar import build_bar
from mpsbar.ui.process_rows import build_processes
from mpsbar.ui.rows import UiState
from mpsbar.ui.status_table import render_table
from mpsbar.ui.text.progress import say_briefly, say_progress
from mpsbar.ui.text.status_json import build_status
from mpsbar.ui.text.status_line import build_fields

EPOCHS = RunBar("", 3.1, 5, "epoch", 0.01, 250.0)
STEPS = RunBar("Epoch 3", 62, 100, "it", 3.14, 12.0)
RUN = RunProgress(EPOCHS, STEPS, 362, 3.1)


@pytest.mark.parametrize(
    ("progress", "text", "brief"),
    [
        (None, "", ""),
        (RUN, "Epoch 3 · 62% · 3.1 it/s · 4 min left", "62% · 4 min left"),
        (RunProgress(STEPS), "Epoch 3 · 62% · 3.1 it/s · 12 s left", "62% · 12 s left"),
        (RunProgress(RunBar("", 0, 9)), "0%", "0%"),
        (RunProgress(RunBar("", 29, 100)), "29%", "29%"),
        (RunProgress(RunBar("", 999, 1000, rate=2.0, seconds_left=0.4)), "99% · 2.0 it/s · 1 s left", "99% · 1 s left"),
        (RunProgress(RunBar("", 7, 7)), "100%", "100%"),
        (RunProgress(RunBar("", 12345, unit="tok", rate=250.4)), "12,345 tok · 250 tok/s", "12,345 tok · 250 tok/s"),
        (RunProgress(steps=1240, steps_per_second=0.4), "1,240 steps · 2.5 s/step", "1,240 steps · 2.5 s/step"),
        (RunProgress(steps=1240), "1,240 steps", "1,240 steps"),
    ],
)  # fmt: skip
def test_words(progress, text, brief):
    assert say_progress(progress) == text
    assert say_briefly(progress) == brief


def test_everywhere():
    worker = make_training(progress=RUN)
    snapshot = make_snapshot(worker)
    assert "Epoch 3 · 62% · 3.1 it/s · 4 min left" in build_processes(snapshot, UiState())[0].text
    head, row = render_table(snapshot).splitlines()
    assert "PROGRESS" in head
    assert "62% · 4 min left" in row
    assert build_status(snapshot)["workers"][0]["progress"]["inner"]["done"] == 62
    fields = build_fields(snapshot)
    assert (fields["progress"], fields["left"]) == ("62%", "4 min")


def test_nothing_is_said_where_nothing_tells():
    snapshot = make_snapshot(make_training())
    assert "PROGRESS" not in render_table(snapshot)
    assert build_status(snapshot)["workers"][0]["progress"] is None
    assert build_fields(snapshot)["progress"] == "?"
    assert build_bar(snapshot, "progress").text == ""


def test_the_menu_bar_shows_the_job_that_has_run_longest():
    young = make_training(2, "young.py", progress=RunProgress(RunBar("", 9, 10)))
    old = make_training(3, "old.py", progress=RUN)
    silent = make_training(1, "silent.py")
    gone = make_training(4, "gone.py", progress=RunProgress(RunBar("", 1, 10)), state="gone")
    starts = {1: 10.0, 2: 50.0, 3: 20.0, 4: 5.0}
    workers = [started_at(worker, starts[worker.pid]) for worker in (young, old, silent, gone)]
    bar = build_bar(make_snapshot(*workers), "progress")
    assert bar.text.strip("\N{FIGURE SPACE}") == "62%"
    assert len(bar.text) == len("100%")
    assert bar.tooltip.startswith("old.py: Epoch 3 · 62% · 3.1 it/s · 4 min left\n")
    assert "old.py: Epoch 3 · 62%" in bar.label


def started_at(worker, started):
    from dataclasses import replace

    return replace(worker, process=replace(worker.process, started=started))
