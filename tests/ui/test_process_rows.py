"""The rows of the processes: the first there are, those that ended, and what a free came to."""

from dataclasses import replace

import pytest
from samples import GB, make_snapshot
from ui.menu_kit import APP, MAX_ROWS, rows, worker

from mpsbar.core.actions import Command, Freed, Tensors
from mpsbar.core.events import EndedProcess
from mpsbar.core.verdicts import EndVerdict
from mpsbar.ui.menu import build_menu


def test_no_error_makes_the_menu_as_wide_as_the_screen():
    freed = {4711: Freed(4711, "train.py", "failed", error="e" * 300)}
    backend = replace(worker().backends[0], name="d" * 300)
    odd = replace(worker(), backends=(backend,))
    found = rows(build_menu(make_snapshot(odd, freed=freed), APP))["worker-4711"]
    assert max(map(len, found.cells)) <= 110
    assert len("".join(found.cells)) < 180
    assert "e" * 300 in found.text
    tensors = {4711: Tensors(4711, "failed", error="e" * 300)}
    found = rows(build_menu(make_snapshot(worker(), tensors=tensors), APP))
    assert len(found["tensor-4711-0"].text) <= 110


def test_how_a_free_ended_stands_in_its_row():
    freed = {4711: Freed(4711, "train.py", "done", int(3.1 * GB), 0.04)}
    row = rows(build_menu(make_snapshot(worker(), freed=freed), APP))["worker-4711"]
    assert row.cells == ("train.py", "mps", "6.0 GB", "cached 3.0 GB, freed 3.1 GB in 40 ms")
    assert row.text == "train.py, mps, 6.0 GB, cached 3.0 GB, freed 3.1 GB in 40 ms"
    freed = {4711: Freed(4711, "train.py", "busy", reason="thread_computing", where="a.py:3 in f")}
    row = rows(build_menu(make_snapshot(worker(), freed=freed), APP))["worker-4711"]
    assert row.cells[3].endswith(
        "busy: another thread is computing (a.py:3 in f); nothing was freed"
    )


def test_more_workers_than_fit():
    many = [worker(100 + n, f"w{n}.py") for n in range(MAX_ROWS + 5)]
    section = build_menu(make_snapshot(*many), APP).sections[2]
    assert len(section) == MAX_ROWS
    assert (section[-1].key, section[-1].text) == ("more", "7 More…")
    assert section[-1].actions == (Command.OPEN_REPORT,)
    assert build_menu(make_snapshot(*many)).sections[2][-1].actions == ()  # nobody to click
    exactly = build_menu(make_snapshot(*many[: MAX_ROWS - 1]), APP).sections[2]
    assert exactly[-1].key == f"worker-{100 + MAX_ROWS - 2}"


def gone(pid, name="old_run.py", ended=820.0, **fields):
    return EndedProcess(pid, 5.0, name, ended, peak=int(11.2 * GB), **fields)


@pytest.mark.parametrize(
    ("one", "note"),
    [
        (gone(1), "ended 3 min ago, peak 11.2 GB, exit code unknown"),
        (gone(1, how="stopped"), "ended 3 min ago, peak 11.2 GB, stopped by mpsbar"),
        (gone(1, how="pressure", ended=999.0),
         "ended just now, peak 11.2 GB, exit code unknown, memory pressure was critical"),
        (gone(1, was_seen=False, ended=1000.0 - 8 * 3600),
         "last seen 8 h ago, ended while mpsbar was not running, peak 11.2 GB, exit code unknown"),
        (replace(gone(1), peak=None), "ended 3 min ago, exit code unknown"),
        (gone(1, ended=2000.0), "ended just now, peak 11.2 GB, exit code unknown"),
    ],
)  # fmt: skip
def test_who_has_gone_has_a_row_with_how_and_when(one, note):
    row = build_menu(make_snapshot(worker(), ended=(one,)), APP).sections[2][-1]
    assert row.cells == ("old_run.py", "", "", note)
    assert (row.text, row.actions, row.children) == (f"old_run.py, {note}", (), ())


def test_the_row_of_an_end_has_its_verdict_and_details_in_a_submenu():
    values = {"at": int(27.4 * GB), "text": "MPS backend out of memory", "allocated": 20 * GB,
              "other": int(7.4 * GB), "limit": 27 * GB, "tried": GB}  # fmt: skip
    verdict = EndVerdict("out_of_memory", "known", values, ("exit_status", "last_words"))
    one = gone(1, "train.py", verdict=verdict, how="out_of_memory", ran=7200.0)
    row = build_menu(make_snapshot(worker(), ended=(one,)), APP).sections[2][-1]
    assert row.text == "train.py, ended 3 min ago, out of memory at 27.4 GB"
    texts = [child.text for child in row.children]
    assert texts[0] == (
        "train.py ran out of memory: 20.0 GB allocated, 7.4 GB other, 27.0 GB allowed; it asked for"
        " 1.0 GB more"
    )
    assert texts[1].endswith(", ran for 2 h, peak 11.2 GB")
    assert "Evidence: the exit record written by its agent" in texts
    assert any(text.startswith("→ Use a smaller batch size in train.py") for text in texts)
    assert texts[-1] == "Copy Details"
    assert row.children[-1].actions[0].text.startswith("train.py (1)\ntrain.py ran out of memory")
    assert row.room >= len(row.children)  # a report may come while the menu is open
    printed = build_menu(make_snapshot(worker(), ended=(one,))).sections[2][-1]
    assert printed.children == ()


def test_a_reset_of_the_gpu_is_on_the_row_until_the_process_ends():
    row = build_menu(make_snapshot(worker(), gpu_resets={4711: 50520.0}), APP).sections[2][1]
    assert "GPU reset at " in row.text
    assert row.text.endswith("results may be wrong")


def test_the_gone_are_few_and_never_push_out_who_is_there():
    past = tuple(gone(n) for n in range(900, 910))
    few = build_menu(make_snapshot(worker(), ended=past), APP).sections[2]
    assert [row.key for row in few[2:]] == ["gone-900-5", "gone-901-5", "gone-902-5"]
    many = [worker(100 + n, f"w{n}.py") for n in range(MAX_ROWS - 2)]
    section = build_menu(make_snapshot(*many, ended=past), APP).sections[2]
    assert (len(section), section[-1].key) == (MAX_ROWS, "gone-900-5")
    many.append(worker(99, "w.py"))
    section = build_menu(make_snapshot(*many, ended=past), APP).sections[2]
    assert (len(section), section[-1].key) == (MAX_ROWS, "worker-99")


def test_long_names_and_doubles_are_distinguished():
    long = "a_very_long_name_of_an_experiment_number_17.py"
    section = build_menu(make_snapshot(worker(1, long), worker(2, long)), APP).sections[2]
    heads, *names = [row.cells[0] for row in section]
    assert heads == "Name"
    assert names == ["a_very_long_n…number_17.py 1", "a_very_long_n…number_17.py 2"]
