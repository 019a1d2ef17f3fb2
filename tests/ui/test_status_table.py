"""`mpsbar status` word for word, and its columns."""

import re
from dataclasses import replace

from samples import GB, MB
from ui.text.scene_kit import MACHINE, SCENE, process

from mpsbar.core.findings import Health, Reason
from mpsbar.core.machine import Problem
from mpsbar.core.snapshot import Snapshot
from mpsbar.ui.status_table import render_status
from mpsbar.ui.text.cells import width


def test_the_status_table(check_golden):
    check_golden("status.txt", render_status(SCENE) + "\n")


def test_the_status_of_nobody_says_how_to_be_seen():
    assert render_status(Snapshot(0.0, machine=MACHINE)) == (
        "Apple M3 Max · 36.0 GB · pressure normal · 12.1 GB available\n"
        "GPU 43% · 9.8 of 27.0 GB\n"
        "No problems\n"
        "You have no PyTorch or MLX processes running. To start one: mpsbar run python train.py"
    )


def test_on_linux_the_column_says_that_it_is_rss():
    found = (process(7, "x.py", footprint=GB, python="/v/bin/python", footprint_kind="rss"),)
    head = render_status(Snapshot(0.0, processes=found)).split("\n\n")[1].splitlines()[0]
    assert "RSS" in head.split()
    assert "FOOTPRINT" not in head.split()


def test_names_of_any_script_stay_in_their_column():
    """Signs of two columns, an accent that is a sign of its own (as macOS writes names), a joiner."""
    names = ("训练模型.py", "cafe\u0301.py", "x\u200b.py", "ascii.py")
    found = tuple(process(n, name, footprint=MB) for n, name in enumerate(names, 1))
    rows = render_status(Snapshot(0.0, processes=found)).split("\n\n")[1].splitlines()[1:]
    assert [width(row.partition("?")[0]) for row in rows] == [18] * 4
    assert [width(name) for name in names] == [11, 7, 4, 8]


def test_ranks_have_rows_of_their_own_and_loaders_are_counted():
    launcher = process(1, "torchrun train.py", footprint=MB, python="/v/bin/python")
    ranks = tuple(process(n, f"train.py rank {n - 2} of 2", footprint=MB, parent=1) for n in (2, 3))
    loaders = tuple(process(n, "train.py rank 0 of 2", footprint=MB, parent=2) for n in (4, 5))
    shown = render_status(Snapshot(0.0, processes=(launcher, *ranks, *loaders)))
    rows = shown.split("\n\n")[1].splitlines()[1:]
    assert [row[3:27].strip() for row in rows] == [
        "torchrun train.py", "└ train.py rank 0 of 2", "└ train.py rank 1 of 2",
        "└ 2 child processes",
    ]  # fmt: skip
    assert "To see the memory of 1" in shown


def test_many_to_connect_are_counted_not_dropped():
    found = tuple(process(n, f"{n}.py", footprint=MB, python="/v/bin/python") for n in range(1, 8))
    assert "To see the memory of 1, 2, 3, 4, 5 (and 2 more): " in render_status(
        Snapshot(0.0, processes=found)
    )
    assert "To see the memory of 1, 2, 3, 4, 5: " in render_status(
        Snapshot(0.0, processes=found[:5])
    )


def test_unknown_is_reported_as_unknown():
    blind = Snapshot(
        0.0, processes=None, problems=(Problem("processes", "OSError: x"),),
        health=Health("ok", (Reason("unknown", "ok"),)),
    )  # fmt: skip
    assert render_status(blind) == (
        "this computer · ? · pressure ?\n"
        "Couldn't read this computer's memory\n"
        "Couldn't list processes (run mpsbar doctor to see why)\n"
        "1 value couldn't be read: run mpsbar doctor to see why"
    )


def test_colour_comes_on_top_of_words_and_never_of_other_peoples_names():
    health = Health("warning", (Reason("pressure", "warning"),))
    scene = replace(SCENE, health=health)
    shown = render_status(scene, is_coloured=True)
    assert "\x1b[33mMemory pressure is high\x1b[0m" in shown
    assert re.sub(r"\x1b\[[\d;]*m", "", shown) == render_status(scene)
