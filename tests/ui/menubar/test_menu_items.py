"""Rows on menu items, on the double of AppKit: what changes while the menu is open, and what stays."""

from dataclasses import replace

from samples import GB, SERVE, make_snapshot, make_training
from thorough import two_sizes
from ui.menubar_kit import HEAD, TAIL, play

from mpsbar.core.events import EndedProcess
from mpsbar.core.machine import Process
from mpsbar.ui.rows import Row


def test_three_workers_of_which_one_is_busy(mac):
    busy = make_training(4712, "notebook kernel", GB, GB // 4, state="busy", age=3.2)
    seen = make_snapshot(
        make_training(), busy, make_training(4713, "serve.py", 2 * GB, 0), processes=[SERVE]
    )

    def person(user):
        assert mac.bar() == " \u20079.0 GB"
        assert user.lines() == [
            *HEAD,
            "Free All Caches (3.2 GB)",
            "─",
            "(Name\tDevice\tMemory)",
            "train.py\tmps\t6.0 GB\t━────\tcached 3.0 GB  ▸",
            "notebook kernel\tmps\t1.0 GB\t━────\tbusy 3.2 s, cached 256 MB  ▸",
            "serve.py 4713\tmps\t2.0 GB\t━────\tcached 0 B  ▸",
            "serve.py 4720\ttorch\t2.0 GB\t━────\tnot connected  ▸",
            *TAIL,
        ]
        assert user.lines("train.py") == [
            "Free Cache", "Largest Tensors  ▸", "Keep Cache Below  ▸", "Free When Idle",
            "Notify When Finished", "Copy PID", "Stop…",
        ]  # fmt: skip
        assert user.lines("serve.py 4720") == ["Connect This Environment…", "Copy PID", "Stop…"]

    play(mac, seen, person)


def test_what_voiceover_reads_of_a_row_has_no_tabs(mac):
    def person(user):
        items = mac.item().menu().itemArray()
        (item,) = [item for item in items if item.title().startswith("train.py")]
        assert item.accessibilityLabel() == "train.py, mps, 6.0 GB, cached 3.0 GB"
        assert item.title() == "train.py, mps, 6.0 GB, cached 3.0 GB"

    play(mac, make_snapshot(make_training()), person)


def test_tooltips_are_there_at_once_and_follow(mac):
    def person(user):
        import rumps

        from mpsbar.ui.menubar.menu_items import MenuLevel

        menu = rumps.MenuItem("menu")
        level = MenuLevel(menu, 1, lambda _: None, lambda _: None)
        level.lay_out([(Row("a", "A", tooltip="first"),)])
        (item,) = [each for each in menu.values() if each.title == "A"]
        assert item._menuitem.toolTip() == "first"
        level.update([(Row("a", "A", tooltip="second"),)])
        assert item._menuitem.toolTip() == "second"
        level.update([(Row("a", "A"),)])
        assert item._menuitem.toolTip() is None

    play(mac, make_snapshot(), person)


def test_the_open_menu_follows(mac):
    """By its timer alone: nobody calls the app."""

    def person(user):
        with user.open() as menu:
            assert user.monitor.looking == 1
            user.monitor.latest = make_snapshot(make_training(held=8 * GB))
            menu.wait(0.6)
            assert "train.py\tmps\t8.0 GB\t━────\tcached 3.0 GB  ▸" in menu.lines()
            assert mac.bar() == " \u20078.0 GB"
            user.monitor.latest = make_snapshot(make_training(held=7 * GB))
            menu.wait(0.6)
            assert mac.bar() == " \u20077.0 GB"
        assert user.monitor.looking == 0
        mac.wait(5)
        user.monitor.latest = make_snapshot(make_training(held=9 * GB))
        mac.wait(1)
        assert mac.bar() == " \u20077.0 GB"  # a closed menu costs less

    play(mac, make_snapshot(make_training()), person)


def test_a_worker_dies_while_its_submenu_is_open_and_another_comes(mac):
    def person(user):
        with user.open("train.py") as menu:
            user.show(make_snapshot(make_training(4712, "b.py"), make_training(4713, "new.py")))
            assert menu.lines() == [
                "(Free Cache)", "Largest Tensors  ▸", "Keep Cache Below  ▸", "(Free When Idle)",
                "(Notify When Finished)", "(Copy PID)",
                "(Stop…)",
            ]  # fmt: skip
            menu.leave()
            workers = menu.lines()[5:7]
            assert workers == [
                "train.py\t\t\t\tended  ▸", "b.py\tmps\t6.0 GB\t━────\tcached 3.0 GB  ▸",
            ]  # fmt: skip
        assert [line.split("\t")[0] for line in user.lines()[5:7]] == ["b.py", "new.py"]

    play(mac, make_snapshot(make_training(), make_training(4712, "b.py")), person)


def test_the_last_worker_ends_and_the_first_comes_while_it_is_open(mac):
    def person(user):
        with user.open() as menu:
            user.show(make_snapshot())
            assert menu.lines()[2:6] == [
                "()",
                "─",
                "(Name\tDevice\tMemory)",
                "train.py\t\t\t\tended  ▸",
            ]
        with user.open() as menu:
            assert menu.lines()[2].startswith("(You have no PyTorch or MLX processes")
            user.show(make_snapshot(make_training()))
            assert menu.lines()[2] == "()"  # it would not be true any more

    play(mac, make_snapshot(make_training()), person)


def test_a_process_that_connects_while_the_menu_is_open_has_not_ended(mac):
    def person(user):
        with user.open("serve.py") as menu:
            user.show(make_snapshot(make_training(4720, "serve.py")))
            assert menu.lines() == ["()", "Copy PID", "Stop…"]
            menu.leave()
            assert menu.lines()[5] == "serve.py\tmps\t6.0 GB\t━────\tcached 3.0 GB  ▸"
            user.show(make_snapshot(processes=[SERVE]))
            assert menu.lines()[5] == "serve.py\ttorch\t2.0 GB\t━────\tnot connected  ▸"
            menu.enter(menu.lines()[5].removesuffix("  ▸"))
            assert menu.lines()[0] == "Connect This Environment…"

    play(mac, make_snapshot(processes=[SERVE]), person)


def test_rows_of_a_kind_change_places_with_rows_of_another(mac):
    """A slot that had a submenu must not keep it for a row that has none, and the other way."""
    children = [Process(n, 7.0, "train.py", ("torch",), parent=4711) for n in (5, 6)]

    def person(user):
        one = user.lines()
        user.show(make_snapshot(make_training(), processes=children))
        assert user.lines()[6] == "(└ 2 child processes\t\t?\t\tnot connected)"
        user.show(make_snapshot(make_training(), make_training(4712, "b.py")))
        assert user.lines()[6].endswith("▸")
        assert user.lines("b.py")[0] == "Free Cache"
        user.show(make_snapshot(make_training()))
        assert user.lines() == one

    play(mac, make_snapshot(make_training()), person)


def test_a_row_can_be_clicked_in_the_place_of_one_with_a_submenu(mac):
    """The second row of a worker leads to its tensors, that of another process copies its pid."""
    from AppKit import NSPasteboard, NSPasteboardTypeString

    def person(user):
        assert user.lines("train.py")[1] == "Largest Tensors  ▸"
        user.show(make_snapshot(processes=[SERVE]))
        user.click("serve.py", "Copy PID")
        text = NSPasteboard.generalPasteboard().stringForType_(NSPasteboardTypeString)
        assert text == "4720"
        user.show(make_snapshot(make_training()))
        assert user.lines("train.py")[1] == "Largest Tensors  ▸"

    play(mac, make_snapshot(make_training()), person)


def test_more_workers_than_rows(mac):
    many = [make_training(100 + n, f"w{n}.py") for n in range(30)]

    def person(user):
        lines = user.lines()
        assert lines[4 + 19] == "12 More…"
        assert lines[4 + 20] == "─"

    play(mac, make_snapshot(*many), person)


def test_who_has_gone_while_the_menu_is_open_and_after(mac):
    gone = EndedProcess(4711, 100.0, "train.py", 999.0, peak=6 * GB)

    def person(user):
        with user.open() as menu:
            user.show(make_snapshot(ended=(gone,), time=1001.0))
            assert menu.lines()[5] == "train.py\t\t\t\tended  ▸"
        assert user.lines()[3:6] == [
            "─", "(Name\tDevice\tMemory)", "(train.py\t\t\t\tended just now, peak 6.0 GB, exit code unknown)",
        ]  # fmt: skip

    play(mac, make_snapshot(make_training()), person)


def test_a_menu_that_is_asked_again_while_open_keeps_its_places(mac):
    """macOS may send menuNeedsUpdate: at any time, for instance to look for a shortcut."""

    def person(user):
        with user.open() as menu:
            user.monitor.latest = make_snapshot(make_training(1, "new.py"), make_training())
            menu.ask_again()
            assert menu.lines()[5].startswith("train.py")

    play(mac, make_snapshot(make_training()), person)


@two_sizes("refreshes", small=[400], whole=[9_000])
def test_refreshes_leave_nothing_behind(mac, refreshes):
    import gc

    import rumps

    def flip(user, number):
        held = (6 + number % 3) * GB
        names = [make_training(100 + n, f"w{n}.py", held) for n in range(5 + number % 2)]
        user.show(make_snapshot(*names, time=1000.0 + number))

    def count(user):
        for number in range(
            300
        ):  # all shapes have been there once: a snapshot carries the last minutes
            flip(user, number)
        user.lines()
        gc.collect()
        return len(gc.get_objects()), len(rumps.rumps.NSApp._ns_to_py_and_callback)

    def grows(user):
        objects, items = count(user)
        for number in range(refreshes):
            flip(user, number)
        for number in range(40):
            with user.open():
                for step in range(10):
                    flip(user, number + step)
        objects_after, items_after = count(user)
        assert items_after == items
        return objects_after - objects >= 300

    def person(user):
        # A leak grows each time; what else happens in this process (a late import, an earlier test) does not.
        assert not all(grows(user) for _ in range(3))

    play(mac, make_snapshot(make_training()), person)


def test_hostile_names_stay_one_line_of_text(mac):
    evil = "<img src=x onerror=alert(1)>\x1b[31m\n⌘Q\u202e%s"

    def person(user):
        lines = user.lines()
        assert len(lines) == 5 + 2 + len(TAIL) - 1
        assert "\n" not in "".join(lines)

    from mpsbar.core.naming import printable

    play(mac, make_snapshot(make_training(name=printable(evil))), person)


def test_the_shortcut_and_the_check_mark_of_a_row_are_those_of_its_item(mac):
    """At once: the same item shows another row the next time."""
    from mpsbar.ui.menubar.menu_items import Slot

    def person(user):
        slot = Slot("slot", lambda row: None, lambda row: None)
        for shortcut, is_checked in (("q", True), ("", False), ("r", True), ("r", False)):
            slot.lay_out(Row("key", "text", shortcut=shortcut, is_checked=is_checked))
            native = slot.item._menuitem
            assert (native.keyEquivalent(), native.state()) == (shortcut, int(is_checked))

    play(mac, make_snapshot(), person)


def test_the_bar_is_drawn_anew_when_only_it_changes(mac):
    def person(user):
        with user.open() as menu:
            snapshot = make_snapshot(make_training())
            gpu = replace(snapshot.machine.gpu, memory_budget=8 * GB)
            user.show(replace(snapshot, machine=replace(snapshot.machine, gpu=gpu)))
            assert "train.py\tmps\t6.0 GB\t━━━━─\tcached 3.0 GB  ▸" in menu.lines()

    play(mac, make_snapshot(make_training()), person)
