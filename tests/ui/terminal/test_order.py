"""The order of the rows by key and by click, and that they do not jump."""

import pytest
from samples import GB, MB, make_snapshot, make_training
from ui.fake_monitor import FakeMonitor
from ui.terminal.top_kit import TRAIN
from ui.terminal_kit import play

from mpsbar.core.actions import Free
from mpsbar.ui.process_table import TableRow
from mpsbar.ui.terminal import order

pytestmark = pytest.mark.usefixtures("noon")


def names(p):
    """As they stand in the table on the screen."""
    lines = [line.strip("│ ").split() for line in p.screen().splitlines()]
    return [
        words[1]
        for words in lines
        if len(words) > 2 and words[0].isdigit() and words[1].endswith(".py")
    ]


def test_sorting_by_key_and_by_a_click_and_back_to_the_order_of_the_menu():
    small = make_training(4713, "a.py", 1 * GB, 900 * MB)
    big = make_training(4714, "b.py", 9 * GB, 1 * MB)

    async def person(p):
        assert names(p) == ["train.py", "a.py", "b.py"]
        await p.press("o")
        assert names(p) == ["b.py", "train.py", "a.py"]
        await p.press("O")
        assert names(p) == ["a.py", "train.py", "b.py"]
        await p.click("CACHED")
        assert names(p) == ["train.py", "a.py", "b.py"]
        await p.click("NAME")
        assert names(p) == ["a.py", "b.py", "train.py"]
        await p.press("o")
        assert names(p) == ["train.py", "a.py", "b.py"]

    play(FakeMonitor(make_snapshot(TRAIN, small, big)), person)


def test_rows_do_not_jump_for_a_little_and_the_chosen_process_stays_chosen():
    def look(a, b, at):
        return make_snapshot(
            make_training(1, "a.py", a, 0), make_training(2, "b.py", b, 0), time=1000.0 + at
        )

    async def person(p):
        await p.press("o", "down")
        assert names(p) == ["a.py", "b.py"]
        await p.show(look(100 * MB, 105 * MB, 2))
        assert names(p) == ["a.py", "b.py"]
        await p.show(look(100 * MB, 200 * MB, 4))
        assert names(p) == ["b.py", "a.py"]
        await p.press("f")
        assert p.asked == [Free(2)]

    play(FakeMonitor(look(100 * MB, 90 * MB, 0)), person)


def test_thousands_of_rows_that_all_change_are_sorted_without_comparing_all_pairs(monkeypatch):
    compared = []
    passes = order._passes
    monkeypatch.setattr(order, "_passes", lambda *given: compared.append(1) or passes(*given))
    rows = [TableRow(str(n), None, {}, {"HELD": 1.2**n}) for n in range(2000)]
    before = [row.key for row in rows]  # the least is first, and every row has to pass all others
    ordered = order.arrange(rows, "HELD", True, before)
    assert [row.key for row in ordered] == before[::-1]
    assert len(compared) < 60 * len(rows)
