"""The menu of the app as a whole: what is there, and what each row asks for."""

from dataclasses import replace

from samples import GB, make_snapshot
from ui.menu_kit import APP, rows, worker
from ui.text.scene_kit import MACHINE, SCENE

from mpsbar.core.actions import (
    ChangeSetting,
    Command,
    Connect,
    Copy,
    FindTensors,
    Free,
    Freed,
    InspectPythons,
    StartAtLogin,
    Stop,
    WatchEnd,
)
from mpsbar.core.findings import Health, Reason
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Snapshot
from mpsbar.ui.menu import SECTIONS, build_menu


def test_the_whole_menu_of_the_app(check_golden):
    serve = Process(4720, 7.0, "serve.py", ("torch",), footprint=2 * GB, python="/v/bin/python")
    seen = make_snapshot(
        worker(), worker(4712, "notebook kernel", state="busy", age=3.2), processes=[serve],
        gpu_utilization=(0, 12, 25, 50, 80, 100, 43),
    )  # fmt: skip
    menu = build_menu(seen, APP)
    assert len(menu.sections) == SECTIONS
    check_golden("menu_app.txt", f"{menu}\n")


def test_without_an_app_there_is_nothing_to_set_or_quit():
    assert [row.key for row in build_menu(make_snapshot(worker())).rows] == [
        "health", "gpu", "free-all", "worker-4711",
    ]  # fmt: skip


def test_each_row_asks_for_its_own():
    serve = Process(4720, 7.0, "serve.py", ("torch",), python="/v/bin/python")
    found = rows(build_menu(make_snapshot(worker(), processes=[serve]), APP))
    assert found["free-4711"].actions == (Free(4711),)
    assert found["tensors-4711"].opens == FindTensors(4711)
    assert found["watch-4711"].actions == (WatchEnd(4711, 100.0, "train.py", on=True),)
    assert found["copy-4711"].actions == (Copy("4711"),)
    assert found["stop-4711"].actions == (Stop(4711, 100.0, "train.py"),)
    assert found["connect-4720"].actions == (Connect("/v/bin/python"),)
    assert found["stop-4720"].actions == (Stop(4720, 7.0, "serve.py"),)
    assert found["diagnostics"].actions == (InspectPythons(),)
    assert found["bar-gpu"].actions == (ChangeSetting("bar", "gpu"),)
    assert found["interval-5"].actions == (ChangeSetting("interval", 5.0),)
    assert found["login"].actions == (StartAtLogin(True),)
    assert (found["quit"].actions, found["quit"].shortcut) == ((Command.QUIT,), "q")


def test_what_is_under_way_cannot_be_clicked_again():
    seen = make_snapshot(
        worker(), worker(4712, "other.py"), pending=frozenset([Free(4711), InspectPythons()])
    )  # fmt: skip
    found = rows(build_menu(seen, APP))
    assert (found["free-4711"].text, found["free-4711"].actions) == ("Freeing…", ())
    assert found["worker-4711"].cells[3].endswith("freeing…")
    assert found["free-all"].actions == (Free(4712),)
    assert found["diagnostics"].actions == ()
    all_of_them = make_snapshot(worker(), pending=frozenset([Free(4711)]))
    head = rows(build_menu(all_of_them, APP))["free-all"]
    assert (head.text, head.actions) == ("Freeing…", ())


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
