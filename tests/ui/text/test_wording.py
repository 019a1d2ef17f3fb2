"""What users see, as literals: sizes, sentences, the whole menu, the table, the JSON."""

import json
import re
from dataclasses import replace
from functools import partial
from typing import get_args

import pytest
from samples import GB, MB, make_backend, make_process, make_worker

from mpsbar.core.actions import Free, Freed, FreeState, LimitState
from mpsbar.core.findings import Health, Reason
from mpsbar.core.machine import Gpu, Machine, Problem
from mpsbar.core.snapshot import Snapshot
from mpsbar.ui.menu import build_menu
from mpsbar.ui.text import outcomes, wording
from mpsbar.ui.text.cells import width
from mpsbar.ui.text.status import render_status
from mpsbar.ui.text.status_json import build_status

MPS = make_backend(
    allocated=int(2.4 * GB), reserved=int(5.5 * GB), driver=int(6.2 * GB), peak=5 * GB,
    budget=27 * GB,
)  # fmt: skip
OLD = make_backend(allocated=1 * GB, driver=int(1.4 * GB))
MLX = make_backend("mlx", allocated=64 * MB, reserved=256 * MB, peak=300 * MB)
CPU = make_backend("cpu")
UNKNOWN_MPS = make_backend(state="not known")

MACHINE = Machine(
    os="macOS 26.3.2", os_version=(26, 3, 2), model="Mac15,10", chip="Apple M3 Max", cores=14,
    core_kinds=(("Performance", 10), ("Efficiency", 4)), memory_total=36 * GB,
    memory_available=int(12.1 * GB), swap_used=0, pressure="normal", on_battery=False,
    is_virtual=False,
    gpu=Gpu("Apple M3 Max", 30, 43.0, int(9.8 * GB), 27 * GB, 0),
)  # fmt: skip

process = partial(make_process, started=1699999000.0)
TRAIN = process(
    4711, "train.py", footprint=7 * GB, footprint_peak=9 * GB, gpu_percent=41.6, gpu_client=True
)
SERVE = process(4714, "serve.py", footprint=800 * MB, gpu_percent=0.0)
WORKERS = (
    make_worker(
        4711, "train.py", backends=(MPS, CPU), frameworks={"torch": "2.13.0"}, process=TRAIN
    ),
    make_worker(4712, "notebook kernel", backends=(OLD, CPU), state="busy", age=3.2),
    make_worker(4713, "serve.py", backends=(MLX,)),
    make_worker(4714, "serve.py", backends=(CPU,), process=SERVE),
    make_worker(
        4715, "a_very_long_name_of_an_experiment_number_17.py", backends=(UNKNOWN_MPS, CPU)
    ),
    make_worker(4716, "process 4716", backends=(), state="busy", age=None),
    make_worker(4717, "prepare.py", backends=()),
    make_worker(4718, "loader", backends=(CPU,), parent=4711),
)
UNCONNECTED = (
    process(4720, "uvicorn app:app", footprint=2 * GB, python="/v/bin/python", gpu_percent=None),
    process(4721, "Paint", footprint=300 * MB, frameworks=("torch", "mlx"), gpu_percent=3.0),
    process(4731, "train.py", footprint=100 * MB, parent=4711),
    process(4732, "train.py", footprint=300 * MB, parent=4711),
    process(4733, "child process", footprint=50 * MB, parent=4720),
)
SCENE = Snapshot(1700000000.0, WORKERS, MACHINE, (TRAIN, *UNCONNECTED))


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "?"), (0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1 << 20, "1.0 MB"),
        (int(99.94 * MB), "99.9 MB"), (int(99.96 * MB), "100 MB"), (1023 * MB, "1.0 GB"),
        (36 * GB, "36.0 GB"), (512 * GB, "512 GB"), (2 << 40, "2.0 TB"), (2**62, "4194304 TB"),
    ],
)  # fmt: skip
def test_sizes(count, text):
    assert wording.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "?"), (0.0004, "0 ms"), (0.04, "40 ms"), (0.9996, "1.0 s"), (9.96, "10 s"),
     (119, "119 s"), (180, "3 min"), (7200, "2 h")],
)  # fmt: skip
def test_durations(seconds, text):
    assert wording.duration(seconds) == text


def test_long_names_are_cut_in_the_middle():
    assert wording.shorten("short", 9) == "short"
    assert wording.shorten("abcdefghijklmnop", 9) == "abcd…mnop"
    assert wording.shorten("abcdefghijklmnop", 10) == "abcde…mnop"


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Freed(1, "a", "done", int(3.1 * GB), 0.04), "freed 3.1 GB in 40 ms"),
        (Freed(1, "a", "done", 0, 0.001, pinned=0), "freed 0 B in 1 ms"),
        (
            Freed(1, "a", "done", 0, 0.001, collected=False, gui_toolkit="Tk"),
            "freed 0 B in 1 ms; gc.collect() skipped: it can crash a program that uses Tk",
        ),
        (
            Freed(1, "a", "done", 0, 0.001, collected=False, main_was_waiting=True),
            "freed 0 B in 1 ms; gc.collect() skipped: the main thread was waiting",
        ),
        (
            Freed(1, "a", "done", 0, 0.001, collected=False),
            "freed 0 B in 1 ms; gc.collect() skipped: the main thread couldn't be reached",
        ),
        (
            Freed(1, "a", "done", 2 * GB, 0.04, pinned=int(1.5 * GB)),
            "freed 2.0 GB in 40 ms; 1.5 GB can't be returned yet: live tensors share those blocks",
        ),
        (
            Freed(1, "a", "busy", 0, 5.0, reason="thread_computing", where="T-1, app.py:3 in f"),
            "busy: another thread is computing (T-1, app.py:3 in f); tried for 5.0 s; nothing was freed",
        ),
        (
            Freed(1, "a", "busy", 736 << 10, 5.0, reason="main_unproven", where="a.py:3 in f"),
            "busy: the main thread couldn't be shown to be waiting (a.py:3 in f); tried for 5.0 s; freed only 736 kB",
        ),
        (Freed(1, "a", "ended"), "the process has ended"),
        (
            Freed(1, "a", "waiting", 0, 5.0, reason="main_computing", where="a.py:3", waits=595),
            "busy: the main thread is computing (a.py:3); it will be freed when possible, within 10 min",
        ),
        (Freed(1, "a", "cancelled"), "waiting Free cancelled"),
        (
            Freed(1, "a", "done", 2 * GB, 0.04, when_possible=True),
            "freed 2.0 GB in 40 ms, at the first safe moment",
        ),
        (
            Freed(1, "a", "busy", reason="main_computing", where="train.py:42 in step"),
            "busy: the main thread is computing (train.py:42 in step); nothing was freed",
        ),
        (
            Freed(1, "a", "busy", reason="of a newer agent"),
            "busy: no safe moment was found; nothing was freed",
        ),
        (
            Freed(1, "a", "gone"),
            "no connected process has this PID (run mpsbar status to list them)",
        ),
        (
            Freed(1, "a", "silent", seconds=30.0),
            "no answer within 30 s; the cache may still be freed later",
        ),
        (Freed(1, "a", "refused", error="no way"), "couldn't connect: no way"),
        (Freed(1, "a", "failed", error="it broke"), "failed: it broke"),
    ],
)
def test_every_ending_of_a_free_has_its_sentence(outcome, text):
    assert outcomes.say_freed(outcome) == text


def test_every_recorded_state_of_a_free_and_a_limit_has_words():
    states = {*get_args(FreeState), *get_args(LimitState)} - {"done", "waiting", "cancelled"}
    assert {state: outcomes.say_not_done(state) for state in states} == {
        "busy": "busy",
        "gone": "not connected",
        "ended": "the process has ended",
        "silent": "no answer",
        "refused": "couldn't connect",
        "failed": "failed",
        "refilled": "the cache filled up again each time",
        "above": "it holds more than that",
        "impossible": "nothing there can be limited",
    }


def test_the_whole_menu(check_golden):
    freed = {4711: Freed(4711, "train.py", "done", int(3.1 * GB), 0.04, pinned=GB)}
    check_golden("menu.txt", str(build_menu(replace(SCENE, freed=freed))) + "\n")


def test_the_menu_of_nobody():
    assert str(build_menu(Snapshot(0.0, machine=MACHINE))) == (
        "⬢\n Apple M3 Max · 36.0 GB · pressure normal\n GPU 43% · 9.8 of 27.0 GB\n"
        " You have no PyTorch or MLX processes running. To start one: mpsbar run python train.py"
    )
    assert str(build_menu(Snapshot(0.0, processes=None))) == (
        "⬢\n this computer · ? · pressure ?\n"
        " Couldn't list processes (run mpsbar doctor to see why)"
    )


def test_the_menu_says_what_is_wrong_instead_of_the_machine():
    health = Health("critical", (Reason("pressure", "critical"),))
    rows = build_menu(Snapshot(0.0, machine=MACHINE, health=health)).rows
    assert rows[0].text == "Memory pressure is critical"


def test_a_row_carries_its_action_and_keeps_its_key():
    menu = build_menu(SCENE)
    rows = {row.key: row for row in menu.rows}
    assert rows["free-all"].actions == tuple(Free(pid) for pid in range(4711, 4719))
    (free,) = rows["worker-4711"].children
    assert (free.key, free.text, free.actions) == ("free-4711", "Free Cache", (Free(4711),))
    assert free.tooltip == "Pauses the process briefly; its next steps may be slower."


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


def test_status_as_json_keeps_to_the_schema():
    status = json.loads(json.dumps(build_status(SCENE)))
    assert (status["schema"], status["time"], len(status["workers"])) == (1, 1700000000.0, 8)
    assert {"machine", "workers", "processes", "health", "dtypes"} <= set(status)
    assert {
        "os",
        "model",
        "chip",
        "memory_total",
        "memory_available",
        "swap_used",
        "pressure",
        "gpu",
    } <= set(status["machine"])
    assert status["machine"]["gpu"] == {
        "name": "Apple M3 Max", "cores": 30, "utilization": 43.0, "memory_in_use": int(9.8 * GB),
        "memory_budget": 27 * GB, "wired_limit": 0, "recoveries": None,
    }  # fmt: skip
    assert [(p["pid"], p["framework"], p["connected"]) for p in status["processes"]] == [
        (4711, "torch", True), (4720, "torch", False), (4721, "torch", False),
        (4731, "torch", False), (4732, "torch", False), (4733, "torch", False),
    ]  # fmt: skip
    assert {"pid", "started", "name", "footprint", "gpu_percent"} <= set(status["processes"][0])
    assert status["health"] == {"level": "ok", "reasons": [], "causes": []}
    assert json.loads(json.dumps(build_status(Snapshot(0.0, processes=None))))["processes"] is None
    train = status["workers"][0]
    backends = train.pop("backends")
    assert train == {
        "pid": 4711, "parent": None, "name": "train.py", "command": [], "python": None, "python_version": None,
        "framework": "torch", "framework_version": "2.13.0", "device": "mps", "state": "live",
        "age_s": 0.0, "agent": None, "allocated": int(2.4 * GB), "cached": 3328599655,
        "cached_is_bound": False, "other": 751619276, "reserved": int(5.5 * GB),
        "driver": int(6.2 * GB), "peak": 5 * GB, "held": int(6.2 * GB), "budget": 27 * GB, "limit": None,
        "started": 1699999000.0, "footprint": 7 * GB, "footprint_kind": "footprint",
        "footprint_peak": 9 * GB, "gpu_percent": 41.6, "progress": None, "settings": {},
    }  # fmt: skip
    assert [backend["name"] for backend in backends] == ["mps", "cpu"]
    unknown = status["workers"][5]
    assert unknown["held"] is unknown["allocated"] is unknown["age_s"] is None


def test_children_are_summed_only_if_all_are_known():
    known, unknown = process(footprint=MB), process(footprint=None)
    assert wording.charged_together((known, known)) == "≤ 2.0 MB"
    assert wording.charged_together((known, unknown)) == "?"


@pytest.mark.parametrize(
    ("frameworks", "text"),
    [
        ([("torch",)], "1 PyTorch process, not connected"),
        ([("mlx",)], "1 MLX process, not connected"),
        ([("torch",), ("mlx",)], "2 PyTorch or MLX processes, not connected"),
    ],
)
def test_what_is_running_is_called_by_its_name(frameworks, text):
    found = tuple(process(n, frameworks=names) for n, names in enumerate(frameworks, 1))
    assert wording.found(Snapshot(0.0, processes=found)) == text


# With the home /Users/jane; the agent shortens it in its record by the same function.
HOMES = [
    ("/Users/jane/venv", "~/venv"),
    ("A=/Users/jane/x:/Users/jane/y", "A=~/x:~/y"),
    ("in '/Users/jane'", "in '~'"),
    ("run `/Users/jane/venv/bin/python -m pip`", "run `~/venv/bin/python -m pip`"),
    ("[/Users/jane/x,/Users/jane/y]</Users/jane>", "[~/x,~/y]<~>"),
    ("it is in /Users/jane.", "it is in ~."),
    ("/Users/jane.old/x", "/Users/jane.old/x"),
    ("/Users/jane-2/x", "/Users/jane-2/x"),
    ("/Users/janet/x", "/Users/janet/x"),
    ("/mnt/Users/jane/x", "/mnt/Users/jane/x"),
]


@pytest.mark.parametrize(("text", "short"), HOMES)
def test_the_home_is_a_tilde(text, short):
    assert wording.shorten_home(text, "/Users/jane/") == short
    assert wording.shorten_home(text, "") == text
    assert wording.shorten_home(text, None) == text
