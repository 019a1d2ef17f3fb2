"""Whole scenes of the menu bar app: the real rumps on the double of AppKit."""

from dataclasses import replace

import pytest
from samples import GB, MAC, make_snapshot, make_training
from ui.feed import Feed
from ui.scene import Scene

from mpsbar.core.actions import (
    CheckUp,
    Connect,
    Connected,
    FindTensors,
    Free,
    Freed,
    Stop,
    Stopped,
    TensorGroup,
    Tensors,
)
from mpsbar.core.events import EndedProcess
from mpsbar.core.findings import Health, Reason
from mpsbar.core.machine import Process
from mpsbar.core.settings import Loaded, Settings
from mpsbar.doctor.rules import Checkup
from mpsbar.system.settings_file import read_settings

HEAD = ["(Apple M3 Max · 36.0 GB · pressure normal)", "(GPU 43 % · 9.8 of 27.0 GB)"]
TAIL = [
    "─",
    "(dtypes: not probed yet)",
    "Run dtype Probe",
    "─",
    "Open Report",
    "How to Profile…",
    "Copy Diagnostics",
    "Settings  ▸",
    "About mpsbar",
    "Quit mpsbar  ⌘Q",
]
SERVE = Process(4720, 7.0, "serve.py", ("torch",), footprint=2 * GB, python="/v/bin/python")


def play(mac, seen, person, **given):
    scene = Scene(mac, Feed(seen), **given)
    scene.run(lambda: person(scene))
    assert mac.state.changed_while_open == []
    return scene


def test_start_with_no_worker(mac):
    def person(scene):
        assert mac.bar() == ""
        assert scene.lines() == [
            *HEAD,
            "(No PyTorch or MLX process of yours is running. To see one: mpsbar run python train.py)",
            *TAIL,
        ]
        button = mac.item().button()
        assert button.image().isTemplate()
        sizes = [picture.pixelsWide() for picture in button.image().representations()]
        assert sizes == [18, 36, 54]
        assert button.accessibilityLabel() == (
            "mpsbar, No PyTorch process is connected, GPU 43 %, All is well"
        )

    play(mac, make_snapshot(), person)


def test_it_is_no_dock_app(mac, monkeypatch):
    """Before its status item exists: changed afterwards, macOS has drawn it without height."""
    from appkit.statusbar import NSStatusBar

    policies = []
    make = NSStatusBar.statusItemWithLength_

    def note(bar, length):
        policies.append(mac.state.single["application"]._policy)
        return make(bar, length)

    monkeypatch.setattr(NSStatusBar, "statusItemWithLength_", note)
    play(mac, make_snapshot(), lambda scene: None)
    assert policies == [1]


def test_three_workers_of_which_one_is_busy(mac):
    busy = make_training(4712, "notebook kernel", GB, GB // 4, state="busy", age=3.2)
    seen = make_snapshot(
        make_training(), busy, make_training(4713, "serve.py", 2 * GB, 0), processes=[SERVE]
    )

    def person(scene):
        assert mac.bar() == " \u20079.0 GB"
        assert scene.lines() == [
            *HEAD,
            "Free All Caches (up to 3.2 GB)",
            "─",
            "train.py\tmps\t6.0 GB\tcached 3.0 GB  ▸",
            "notebook kernel\tmps\t1.0 GB\tbusy 3.2 s, cached 256 MB  ▸",
            "serve.py 4713\tmps\t2.0 GB\tcached 0 B  ▸",
            "serve.py 4720\ttorch\t2.0 GB\tnot connected  ▸",
            *TAIL,
        ]
        assert scene.lines("train.py") == [
            "Free Cache", "Biggest Tensors  ▸", "Notify When It Ends", "Copy PID", "Stop…",
        ]  # fmt: skip
        assert scene.lines("serve.py 4720") == ["Connect This Environment…", "Copy PID", "Stop…"]

    play(mac, seen, person)


def test_what_voiceover_reads_of_a_row_has_no_tabs(mac):
    def person(scene):
        item = mac.item().menu().itemAtIndex_(4)
        assert item.accessibilityLabel() == "train.py, mps, 6.0 GB, cached 3.0 GB"
        assert item.title() == "train.py, mps, 6.0 GB, cached 3.0 GB"

    play(mac, make_snapshot(make_training()), person)


def test_free_and_the_menu_is_closed_when_it_ends(mac):
    freed = Freed(4711, "train.py", "done", int(3.1 * GB), 0.04)

    def person(scene):
        scene.click("train.py", "Free Cache")
        assert scene.feed.asked[0][0] == Free(4711)
        scene.end(0, freed)
        assert scene.notices.told == [("train.py", "freed 3.1 GB in 40 ms", "freed-4711")]
        scene.show(make_snapshot(make_training(held=3 * GB, cached=0), freed={4711: freed}))
        assert "train.py\tmps\t3.0 GB\tcached 0 B, freed 3.1 GB in 40 ms  ▸" in scene.lines()

    play(mac, make_snapshot(make_training()), person)


def test_free_and_the_menu_is_open_when_it_ends(mac):
    freed = Freed(4711, "train.py", "busy", reason="thread_computing", where="a.py:3 in f")

    def person(scene):
        scene.click("train.py", "Free Cache")
        with scene.open() as menu:
            scene.show(make_snapshot(make_training(), pending=frozenset([Free(4711)])))
            assert "train.py\tmps\t6.0 GB\tcached 3.0 GB, freeing…  ▸" in menu.lines()
            scene.end(0, freed)
            scene.show(make_snapshot(make_training(), freed={4711: freed}))
            assert menu.lines()[4] == (
                "train.py\tmps\t6.0 GB\tcached 3.0 GB, busy: another thread is computing"
                " (a.py:3 in f); not freed, try again  ▸"
            )
        assert scene.notices.told == []  # the row told it

    play(mac, make_snapshot(make_training()), person)


def test_who_does_not_answer_is_named_all_the_same(mac):
    silent = Freed(4711, "4711", "silent", seconds=30.0)

    def person(scene):
        scene.click("train.py", "Free Cache")
        scene.show(make_snapshot())
        scene.end(0, silent)
        assert scene.notices.told[0][:2] == (
            "train.py", "no answer within 30 s; it may still free later",
        )  # fmt: skip

    play(mac, make_snapshot(make_training()), person)


def test_free_all_is_one_notice(mac):
    def person(scene):
        scene.click("Free All Caches")
        assert [action for action, _ in scene.feed.asked] == [Free(1), Free(2), Free(3)]
        scene.end(1, Freed(2, "b.py", "done", GB, 0.1))
        scene.end(0, Freed(1, "a.py", "done", 2 * GB, 0.1))
        assert scene.notices.told == []
        scene.end(2, Freed(3, "c.py", "busy", reason="main_computing"))
        assert scene.notices.told == [
            (
                "Freed 3.0 GB in 2 of 3 processes",
                "c.py: busy: the main thread is computing; not freed, try again",
                "freed-all",
            )
        ]

    play(
        mac,
        make_snapshot(make_training(1, "a.py"), make_training(2, "b.py"), make_training(3, "c.py")),
        person,
    )


def test_the_open_menu_follows(mac):
    """By its timer alone: nobody calls the app."""

    def person(scene):
        with scene.open() as menu:
            assert scene.feed.looking == 1
            scene.feed.latest = make_snapshot(make_training(held=8 * GB))
            menu.wait(0.6)
            assert "train.py\tmps\t8.0 GB\tcached 3.0 GB  ▸" in menu.lines()
            assert mac.bar() == " \u20078.0 GB"
            scene.feed.latest = make_snapshot(make_training(held=7 * GB))
            menu.wait(0.6)
            assert mac.bar() == " \u20077.0 GB"
        assert scene.feed.looking == 0
        mac.wait(5)
        scene.feed.latest = make_snapshot(make_training(held=9 * GB))
        mac.wait(1)
        assert mac.bar() == " \u20077.0 GB"  # a closed menu costs less

    play(mac, make_snapshot(make_training()), person)


def test_a_worker_dies_while_its_submenu_is_open_and_another_comes(mac):
    def person(scene):
        with scene.open("train.py") as menu:
            scene.show(make_snapshot(make_training(4712, "b.py"), make_training(4713, "new.py")))
            assert menu.lines() == [
                "(Free Cache)", "Biggest Tensors  ▸", "(Notify When It Ends)", "(Copy PID)",
                "(Stop…)",
            ]  # fmt: skip
            menu.leave()
            workers = menu.lines()[4:6]
            assert workers == [
                "train.py\t\t\tended  ▸", "b.py\tmps\t6.0 GB\tcached 3.0 GB  ▸",
            ]  # fmt: skip
        assert [line.split("\t")[0] for line in scene.lines()[4:6]] == ["b.py", "new.py"]

    play(mac, make_snapshot(make_training(), make_training(4712, "b.py")), person)


def test_the_last_worker_ends_and_the_first_comes_while_it_is_open(mac):
    def person(scene):
        with scene.open() as menu:
            scene.show(make_snapshot())
            assert menu.lines()[2:5] == ["()", "─", "train.py\t\t\tended  ▸"]
        with scene.open() as menu:
            assert menu.lines()[2].startswith("(No PyTorch or MLX process")
            scene.show(make_snapshot(make_training()))
            assert menu.lines()[2] == "()"  # it would not be true any more

    play(mac, make_snapshot(make_training()), person)


def test_a_process_that_connects_while_the_menu_is_open_has_not_ended(mac):
    def person(scene):
        with scene.open("serve.py") as menu:
            scene.show(make_snapshot(make_training(4720, "serve.py")))
            assert menu.lines() == ["()", "Copy PID", "Stop…"]
            menu.leave()
            assert menu.lines()[4] == "serve.py\tmps\t6.0 GB\tcached 3.0 GB  ▸"
            scene.show(make_snapshot(processes=[SERVE]))
            assert menu.lines()[4] == "serve.py\ttorch\t2.0 GB\tnot connected  ▸"
            menu.enter(menu.lines()[4].removesuffix("  ▸"))
            assert menu.lines()[0] == "Connect This Environment…"

    play(mac, make_snapshot(processes=[SERVE]), person)


def test_rows_of_a_kind_change_places_with_rows_of_another(mac):
    """A slot that had a submenu must not keep it for a row that has none, and the other way."""
    children = [Process(n, 7.0, "train.py", ("torch",), parent=4711) for n in (5, 6)]

    def person(scene):
        one = scene.lines()
        scene.show(make_snapshot(make_training(), processes=children))
        assert scene.lines()[5] == "(└ 2 child processes\t\t≤ ?\tnot connected)".replace("≤ ?", "?")
        scene.show(make_snapshot(make_training(), make_training(4712, "b.py")))
        assert scene.lines()[5].endswith("▸")
        assert scene.lines("b.py")[0] == "Free Cache"
        scene.show(make_snapshot(make_training()))
        assert scene.lines() == one

    play(mac, make_snapshot(make_training()), person)


def test_a_row_can_be_clicked_in_the_place_of_one_with_a_submenu(mac):
    """The second row of a worker leads to its tensors, that of another process copies its pid."""
    from AppKit import NSPasteboard, NSPasteboardTypeString

    def person(scene):
        assert scene.lines("train.py")[1] == "Biggest Tensors  ▸"
        scene.show(make_snapshot(processes=[SERVE]))
        scene.click("serve.py", "Copy PID")
        text = NSPasteboard.generalPasteboard().stringForType_(NSPasteboardTypeString)
        assert text == "4720"
        scene.show(make_snapshot(make_training()))
        assert scene.lines("train.py")[1] == "Biggest Tensors  ▸"

    play(mac, make_snapshot(make_training()), person)


def test_more_workers_than_rows(mac):
    many = [make_training(100 + n, f"w{n}.py") for n in range(30)]

    def person(scene):
        lines = scene.lines()
        assert lines[4 + 19] == "and 11 more…"
        assert lines[4 + 20] == "─"

    play(mac, make_snapshot(*many), person)


def test_the_biggest_tensors_are_counted_when_they_come_into_view(mac):
    found = Tensors(4711, "done", (TensorGroup("mps", "float32", "4096x4096", 3, 3 << 26),))

    def person(scene):
        with scene.open("train.py") as menu:
            assert scene.feed.asked == []  # not before: it costs the worker a moment
            menu.enter("Biggest Tensors")
            assert scene.feed.asked[0][0] == FindTensors(4711)
            scene.show(make_snapshot(make_training(), pending=frozenset([FindTensors(4711)])))
            assert menu.lines()[:2] == ["(counting…)", "()"]
            scene.show(make_snapshot(make_training(), tensors={4711: found}))
            assert menu.lines()[:2] == ["(192 MB  3 × float32 4096×4096  mps)", "()"]
        with scene.open("train.py", "Biggest Tensors") as menu:
            assert scene.feed.asked[1][0] == FindTensors(4711)  # anew
            assert menu.lines()[:2] == ["(192 MB  3 × float32 4096×4096  mps)", "()"]
            more = TensorGroup("cpu", "int64", "8", 1, 64)
            again = replace(found, groups=(*found.groups, more))
            scene.show(make_snapshot(make_training(), tensors={4711: again}))
            assert menu.lines()[1] == "(64 B  int64 8  cpu)"  # there is room for what is new

    play(mac, make_snapshot(make_training()), person)


def test_tensors_are_not_counted_twice_at_once(mac):
    """Four counts of a worker that hangs would be all that the monitor does at once."""

    def person(scene):
        for _ in range(5):
            scene.lines("train.py", "Biggest Tensors")
            scene.show(make_snapshot(make_training(), pending=frozenset([FindTensors(4711)])))
        assert len(scene.feed.asked) == 1

    play(mac, make_snapshot(make_training()), person)


def test_stop_asks_and_is_firmer_the_second_time(mac):
    def person(scene):
        mac.answer("Cancel")
        scene.click("train.py", "Stop…")
        assert scene.feed.asked == []
        mac.answer("Stop")
        scene.click("train.py", "Stop…")
        assert scene.feed.asked[0][0] == Stop(4711, 100.0, "train.py")
        stopped = Stopped(4711, "train.py", "asked")
        scene.end(0, stopped)
        scene.show(make_snapshot(make_training(), stopped={4711: stopped}))
        mac.answer("End")
        scene.click("train.py", "Stop…")
        assert scene.feed.asked[1][0] == Stop(4711, 100.0, "train.py", firmly=True)
        scene.end(1, Stopped(4711, "train.py", "another", firmly=True))
        assert scene.notices.told == [
            ("train.py", "its pid is another process now: nothing was sent", "stopped-4711")
        ]
        assert [alert.split("?")[0] for alert in mac.state.alerts] == [
            "Stop train.py (process 4711)",
            "Stop train.py (process 4711)",
            "End train.py (process 4711)",
        ]

    play(mac, make_snapshot(make_training()), person)


def test_connect_asks_and_says_that_it_takes_effect_later(mac):
    def person(scene):
        mac.answer("Connect")
        scene.click("serve.py", "Connect This Environment…")
        assert scene.feed.asked[0][0] == Connect("/v/bin/python")
        mac.answer("OK")
        scene.end(0, Connected("/v/bin/python", "enabled"))
        mac.wait(1)
        asked, told = mac.state.alerts
        assert asked.startswith("Connect this environment?: /v/bin/python")
        assert told == (
            "Connected: /v/bin/python\n\nIts agent answered."
            " It takes effect when the process is started again."
        )

    play(mac, make_snapshot(processes=[SERVE]), person)


def test_what_ended_waits_with_its_dialog_for_an_open_menu_and_another_dialog(mac):
    ended = Connected("/v/bin/python", "enabled")

    def person(scene):
        mac.answer("Connect")
        scene.click("serve.py", "Connect This Environment…")
        with scene.open() as menu:
            scene.end(0, ended)
            menu.wait(5)
            assert len(mac.state.alerts) == 1
        mac.answer("OK")
        mac.wait(1)
        assert mac.state.alerts[-1].startswith("Connected: ")
        mac.answer("Connect")
        scene.click("serve.py", "Connect This Environment…")
        mac.answer("OK", meanwhile=lambda: (scene.end(1, ended), mac.wait(5)))
        scene.click("About mpsbar")
        assert mac.state.alerts[-1].startswith("mpsbar: Version")
        mac.answer("OK")
        mac.wait(1)
        assert mac.state.alerts[-1].startswith("Connected: ")

    play(mac, make_snapshot(processes=[SERVE]), person)


def test_copies(mac):
    from AppKit import NSPasteboard, NSPasteboardTypeString

    def pasted():
        return NSPasteboard.generalPasteboard().stringForType_(NSPasteboardTypeString)

    def person(scene):
        scene.click("train.py", "Copy PID")
        assert pasted() == "4711"
        scene.click("Copy Diagnostics")
        assert scene.feed.asked[0][0] == CheckUp()
        scene.end(0, Checkup(MAC))
        assert pasted().startswith("mpsbar 0")
        assert "Apple M3 Max · 36.0 GB" in pasted()
        assert "train.py" in pasted()
        assert scene.notices.told[0][0] == "Diagnostics copied"

    play(mac, make_snapshot(make_training()), person)


def test_open_report(mac, private):
    def person(scene):
        scene.click("Open Report")
        assert scene.feed.asked[0][0] == CheckUp()
        assert "(Making the Report…)" in scene.lines()
        scene.end(0, Checkup(MAC))
        file = private / "data" / "report.html"
        mac.wait_for(lambda: mac.state.opened)
        assert mac.state.opened == [file.as_uri()]
        assert "train.py" in file.read_text(encoding="utf-8")
        mac.wait_for(lambda: "Open Report" in scene.lines())
        assert scene.notices.told == []

    play(mac, make_snapshot(make_training()), person)


def test_a_report_that_cannot_be_made_says_why_and_can_be_asked_again(mac, private):
    (private / "data").mkdir(exist_ok=True)
    (private / "data" / "report.html").mkdir()

    def person(scene):
        scene.click("Open Report")
        scene.end(0, Checkup(MAC))
        mac.wait_for(lambda: scene.notices.told)
        assert scene.notices.told[0][0] == "Open Report failed"
        assert "it is not a file" in scene.notices.told[0][1]
        mac.wait_for(lambda: "Open Report" in scene.lines())

    play(mac, make_snapshot(make_training()), person)


def test_more_workers_than_rows_are_in_the_report(mac):
    many = [make_training(100 + n, f"w{n}.py") for n in range(30)]

    def person(scene):
        scene.click("and 11 more…")
        scene.end(0, Checkup(MAC))
        mac.wait_for(lambda: mac.state.opened)

    play(mac, make_snapshot(*many), person)


def test_who_has_gone_while_the_menu_is_open_and_after(mac):
    gone = EndedProcess(4711, 100.0, "train.py", 999.0, peak=6 * GB)

    def person(scene):
        with scene.open() as menu:
            scene.show(make_snapshot(ended=(gone,), time=1001.0))
            assert menu.lines()[4] == "train.py\t\t\tended  ▸"
        assert scene.lines()[3:5] == [
            "─", "(train.py\t\t\tended just now, peak 6.0 GB, exit code not known)",
        ]  # fmt: skip

    play(mac, make_snapshot(make_training()), person)


def test_how_to_profile(mac):
    from AppKit import NSPasteboard, NSPasteboardTypeString

    def person(scene):
        mac.answer("Copy Snippet")
        scene.click("How to Profile…")
        text = NSPasteboard.generalPasteboard().stringForType_(NSPasteboardTypeString)
        assert "torch.mps.profiler.profile" in text
        mac.state.applications["com.apple.ActivityMonitor"] = "/System/Activity Monitor.app"
        mac.answer("Open Activity Monitor")
        scene.click("How to Profile…")
        assert mac.state.opened == ["file:///System/Activity Monitor.app"]
        mac.answer("Open Instruments")
        mac.answer("OK")
        scene.click("How to Profile…")
        assert mac.state.alerts[-1] == (
            "Instruments could not be opened: Instruments was not found on this Mac."
            " It comes with Xcode, from the App Store."
        )

    play(mac, make_snapshot(), person)


def test_settings_are_changed_and_kept_over_a_restart(mac, private):
    def person(scene):
        scene.click("Settings", "Menu Bar Shows", "GPU %")
        mac.wait(0)
        assert mac.bar() == " \u200743 %"
        scene.click("Settings", "Refresh", "Every 5 s")
        assert scene.feed.interval == 5.0
        scene.click("Settings", "Alerts", "Perhaps a Leak")
        assert "✓ GPU %" in scene.lines("Settings", "Menu Bar Shows")

    play(mac, make_snapshot(make_training()), person)
    kept = read_settings().settings
    assert (kept.bar, kept.interval, "leak" in kept.alert_causes) == ("gpu", 5.0, False)


def test_a_setting_that_cannot_be_kept_is_told_and_still_used(mac, private):
    (private / "config").mkdir()
    (private / "config/settings.toml").mkdir()

    def person(scene):
        scene.click("Settings", "Menu Bar Shows", "Only a Dot")
        mac.wait_for(lambda: scene.notices.told)
        (title, text, _), *_ = scene.notices.told
        assert title == "Saving the settings failed"
        assert "settings.toml" in text
        assert str(private / "log") in text
        assert mac.bar() == "●"

    play(mac, make_snapshot(make_training()), person)


def test_the_dot_and_the_icon_have_the_shape_of_the_health(mac):
    sick = Health("critical", (Reason("pressure", "critical"),))

    def person(scene):
        healthy = mac.item().button().image()
        scene.show(make_snapshot(make_training(), health=sick))
        assert mac.bar() == " \u20076.0 GB ‼"
        assert mac.item().button().image() is not healthy
        assert scene.lines()[0] == "(Memory pressure is critical)"
        scene.click("Settings", "Menu Bar Shows", "Only a Dot")
        assert (mac.bar(), mac.item().button().image()) == ("■", None)
        scene.click("Settings", "Menu Bar Shows", "Only the Icon")
        assert mac.bar() == " ‼"

    play(mac, make_snapshot(make_training()), person)


def test_alert_cool_down_and_recovery(mac):
    sick = Health("warning", (Reason("pressure", "warning"),))
    well = Health()

    def tell(scene, at, health):
        scene.show(make_snapshot(make_training(), time=1000.0 + at, health=health))
        return [title for title, _, _ in scene.notices.told]

    def person(scene):
        first = tell(scene, 2, sick)
        assert len(first) == 1
        assert "pressure" in first[0]
        assert tell(scene, 4, sick) == first  # once
        for at in range(6, 36, 2):
            told = tell(scene, at, well)
        assert told == first  # not over at once
        for at in range(36, 50, 2):
            told = tell(scene, at, well)
        assert told == [*first, "Better again"]
        for at in range(50, 110, 2):
            told = tell(scene, at, sick)
        assert told == [*first, "Better again"]  # still cooling down
        for at in range(110, 700, 30):
            told = tell(scene, at, sick)
        assert told == [*first, "Better again", *first]

    play(mac, make_snapshot(make_training()), person)


def test_alerts_can_be_switched_off(mac):
    sick = Health("warning", (Reason("pressure", "warning"),))

    def person(scene):
        scene.click("Settings", "Alerts", "Notify Me")
        scene.show(make_snapshot(make_training(), health=sick))
        assert scene.notices.told == []

    play(mac, make_snapshot(make_training()), person)


def test_notify_when_it_ends(mac):
    def person(scene):
        scene.click("train.py", "Notify When It Ends")
        assert "✓ Notify When It Ends" in scene.lines("train.py")
        for at in (2, 4, 6):
            scene.show(make_snapshot(time=1000.0 + at))
        assert [title for title, _, _ in scene.notices.told] == ["train.py ended"]
        assert scene.app._controller.ui_state.watched == frozenset()

    play(mac, make_snapshot(make_training()), person)


def test_who_is_to_be_told_of_stays_so_when_its_start_becomes_known(mac):
    def person(scene):
        scene.click("train.py", "Notify When It Ends")
        scene.show(make_snapshot(make_training(), time=1002.0))
        assert "✓ Notify When It Ends" in scene.lines("train.py")
        scene.click("train.py", "Notify When It Ends")
        assert "Notify When It Ends" in scene.lines("train.py")
        for at in (4, 6, 8):
            scene.show(make_snapshot(time=1000.0 + at))
        assert scene.notices.told == []

    unknown = replace(make_training(), process=None)
    play(mac, replace(make_snapshot(make_training()), workers=(unknown,), processes=()), person)


def test_sleep_and_wake(mac):
    """No tick while it sleeps, one after; nothing is announced that only the pause made."""

    def person(scene):
        scene.show(make_snapshot(make_training(), time=1002.0))
        mac.sleep(3600)
        assert scene.feed.log == ["rest", "wake"]
        scene.show(make_snapshot(make_training(state="busy", age=3600.0), time=4602.0))
        scene.show(make_snapshot(make_training(), time=4604.0))
        mac.wait(1)
        assert scene.notices.told == []
        assert "train.py\tmps\t6.0 GB\tcached 3.0 GB  ▸" in scene.lines()

    play(mac, make_snapshot(make_training()), person)


def test_a_sleep_that_was_called_off_does_not_stop_the_looks_for_ever(mac):
    def person(scene):
        mac.announce_sleep()
        mac.wait(30)
        assert scene.feed.log == ["rest"]
        mac.wait(60)
        assert scene.feed.log == ["rest", "wake"]
        mac.announce_sleep()
        mac.sleep(8 * 3600)
        mac.wait(3600)
        assert scene.feed.log == ["rest", "wake", "rest", "rest", "wake"]

    play(mac, make_snapshot(make_training()), person)


def test_quit_while_a_free_is_under_way(mac):
    """The last thing asked never ends; quitting does not wait for it."""

    def person(scene):
        scene.click("train.py", "Free Cache")

    scene = play(mac, make_snapshot(make_training()), person)
    assert scene.feed.log[-1] == "close"
    assert not scene.feed.asked[0][1].done()


def test_a_crash_in_a_callback_is_logged_and_told_and_the_app_goes_on(mac, private):
    from mpsbar.system.log import start_log

    start_log()

    def person(scene):
        scene.feed.perform = lambda action: 1 / 0
        scene.click("train.py", "Free Cache")
        (title, text, _), *_ = scene.notices.told
        assert (title, text.split(".")[0]) == (
            "Free Cache failed",
            "ZeroDivisionError: division by zero",
        )
        scene.show(
            replace(make_snapshot(make_training()), machine=None)
        )  # a snapshot that cannot be drawn
        scene.show(make_snapshot(make_training(held=7 * GB)))
        assert mac.bar() == " \u20077.0 GB"

    play(mac, make_snapshot(make_training()), person)
    log = (private / "log/mpsbar.log").read_text()
    assert "ZeroDivisionError: division by zero" in log
    assert "Traceback" in log
    assert "AttributeError" in log


def test_start_at_login_is_read_each_time_the_menu_opens(mac, monkeypatch):
    def person(scene):
        from mpsbar.desktop import login, login_macos

        monkeypatch.setattr(login, "_platform", lambda: login_macos)

        def settings():
            with scene.open() as menu:
                mac.wait_for(lambda: not scene.app._controller._pool._work_queue.qsize())
                menu.wait(0.6)
                menu.enter("Settings")
                return menu.lines()[-1]

        mac.wait_for(lambda: settings() == "Start at Login")
        scene.click("Settings", "Start at Login")
        mac.wait_for(lambda: settings() == "✓ Start at Login")
        assert mac.state.login_status == 1
        mac.state.login_status = 0  # by the person, in System Settings
        mac.wait_for(lambda: settings() == "Start at Login")
        mac.state.login_after_register = 2
        scene.click("Settings", "Start at Login")
        mac.wait_for(lambda: mac.state.opened == ["System Settings: Login Items"])
        assert scene.notices.told == []

    play(mac, make_snapshot(), person)


def test_start_at_login_tells_why_it_cannot_be(mac, monkeypatch):
    from mpsbar.desktop import login

    image = login.LoginStatus("unavailable", "app", "/Volumes/mpsbar/mpsbar.app", "disk_image")
    monkeypatch.setattr(login, "read_login", lambda: image)
    monkeypatch.setattr(login, "turn_on", lambda: image)

    def person(scene):
        mac.wait_for(lambda: scene.lines("Settings")[-1] == "Start at Login")
        scene.click("Settings", "Start at Login")
        mac.wait_for(lambda: scene.notices.told)
        assert scene.notices.told[0][1] == (
            "mpsbar cannot change its start at login: it runs from its disk image;"
            " move it to Applications first"
        )

    play(mac, make_snapshot(), person)


def test_a_second_start_brings_a_notice(mac):
    from mpsbar.system.single_instance import claim, nudge

    def person(scene):
        assert claim() is None
        assert nudge()
        mac.wait(6)
        assert scene.notices.told[0][0] == "mpsbar is running already"
        mac.wait(20)
        assert len(scene.notices.told) == 1

    play(mac, make_snapshot(), person)


@pytest.mark.parametrize(("has_room", "doubt"), [(True, None), (False, "not_visible")])
def test_the_app_looks_whether_its_icon_is_drawn(mac, has_room, doubt):
    from mpsbar.desktop.icon_visibility import read_icon

    mac.state.bar_has_room = has_room

    def person(scene):
        assert read_icon() is None
        mac.wait(3.1)
        mac.wait_for(read_icon)
        assert read_icon().doubt == doubt

    play(mac, make_snapshot(), person)


def test_about(mac):
    def person(scene):
        mac.answer("OK")
        scene.click("About mpsbar")
        assert mac.state.alerts[0].startswith("mpsbar: Version 0")

    play(mac, make_snapshot(), person)


def test_a_dialog_opens_in_front_of_the_app_that_is_active(mac):
    from AppKit import NSApplication

    def person(scene):
        ours = NSApplication.sharedApplication()
        ours._active = False  # the person works elsewhere
        seen = []
        mac.answer("OK", meanwhile=lambda: seen.append(ours.isActive()))
        scene.click("About mpsbar")
        assert seen == [True]

    play(mac, make_snapshot(), person)


def test_macos_is_asked_not_to_hold_back_its_timers(mac):
    from AppKit import NSActivityUserInitiatedAllowingIdleSystemSleep

    def person(scene):
        import gc

        gc.collect()  # who does not keep the activity has none
        assert mac.state.activities == [NSActivityUserInitiatedAllowingIdleSystemSleep]

    play(mac, make_snapshot(), person)


def test_what_no_row_tells_is_announced_also_while_the_menu_is_open(mac):
    def person(scene):
        for _ in range(2):
            scene.click("Copy Diagnostics")
        with scene.open():
            scene.end(0, Checkup(MAC))
            scene.feed.asked[1][1].set_exception(OSError("no Python was found"))
            mac.wait(0)
        copied, failed = scene.notices.told
        assert copied[0] == "Diagnostics copied"
        assert failed[0] == "Copy Diagnostics failed"
        assert failed[1].startswith("OSError: no Python was found. More is in ")

    play(mac, make_snapshot(), person)


def test_a_menu_that_is_asked_again_while_open_keeps_its_places(mac):
    """macOS may send menuNeedsUpdate: at any time, for instance to look for a shortcut."""

    def person(scene):
        with scene.open() as menu:
            scene.feed.latest = make_snapshot(make_training(1, "new.py"), make_training())
            root = menu.levels[0]
            root.delegate().menuNeedsUpdate_(root)
            assert menu.lines()[4].startswith("train.py")

    play(mac, make_snapshot(make_training()), person)


def test_complaints_about_the_settings_are_told_and_the_cool_down_is_theirs(mac):
    complaint = "bar is 7: it must be one of memory, gpu, dot, icon"
    loaded = Loaded(Settings(cool_down=1.0), "", complaints=(complaint,))

    def person(scene):
        assert scene.notices.told == [("Not all settings can be used", complaint, "settings")]
        assert scene.feed.alerts.cool_down == 1.0

    play(mac, make_snapshot(), person, loaded=loaded)


def test_tooltips_and_the_place_in_the_bar(mac):
    def person(scene):
        assert mac.item().autosaveName() == "mpsbar"
        assert mac.item().button().toolTip() == "All is well"
        with scene.open("train.py") as menu:
            assert menu.find("Free Cache").toolTip().startswith("Pauses the process briefly")

    play(mac, make_snapshot(make_training()), person)


def test_digits_of_one_width_and_a_dot_with_a_colour(mac):
    from AppKit import (
        NSColor,
        NSFontAttributeName,
        NSForegroundColorAttributeName,
        NSParagraphStyleAttributeName,
    )

    def attributes(text):
        ((_, _, found),) = text._runs
        return found

    def person(scene):
        button = mac.item().button()
        seen = attributes(button.attributedTitle())
        assert seen[NSFontAttributeName].fontName().endswith("digits")
        with scene.open() as menu:
            row = attributes(menu.find("train.py\tmps\t6.0 GB\tcached 3.0 GB").attributedTitle())
        assert row[NSFontAttributeName].fontName().endswith("digits")
        assert len(row[NSParagraphStyleAttributeName].tabStops()) == 3
        scene.click("Settings", "Menu Bar Shows", "Only a Dot")
        dot = attributes(button.attributedTitle())
        assert vars(dot[NSForegroundColorAttributeName]) == vars(NSColor.systemGreenColor())

    play(mac, make_snapshot(make_training()), person)


def test_after_quitting_another_may_start(mac):
    from mpsbar.system.single_instance import claim

    play(mac, make_snapshot(), lambda scene: None)
    assert claim() is not None


def test_ten_thousand_refreshes_leave_nothing_behind(mac):
    import gc

    import rumps

    def flip(scene, number):
        held = (6 + number % 3) * GB
        names = [make_training(100 + n, f"w{n}.py", held) for n in range(5 + number % 2)]
        scene.show(make_snapshot(*names, time=1000.0 + number))

    def person(scene):
        for number in range(300):  # all shapes have been there once
            flip(scene, number)
        scene.lines()
        gc.collect()
        objects, items = len(gc.get_objects()), len(rumps.rumps.NSApp._ns_to_py_and_callback)
        for number in range(9_000):
            flip(scene, number)
        for number in range(100):
            with scene.open():
                for step in range(10):
                    flip(scene, number + step)
        for number in range(300):  # as before the first count: a snapshot carries the last minutes
            flip(scene, number)
        scene.lines()
        gc.collect()
        assert len(rumps.rumps.NSApp._ns_to_py_and_callback) == items
        assert abs(len(gc.get_objects()) - objects) < 300

    play(mac, make_snapshot(make_training()), person)


def test_hostile_names_stay_one_line_of_text(mac):
    evil = "<img src=x onerror=alert(1)>\x1b[31m\n⌘Q\u202e%s"

    def person(scene):
        lines = scene.lines()
        assert len(lines) == 5 + 1 + len(TAIL) - 1
        assert "\n" not in "".join(lines)

    from mpsbar.core.naming import printable

    play(mac, make_snapshot(make_training(name=printable(evil))), person)
