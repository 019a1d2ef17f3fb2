"""The last line of the screen: which keys it offers, at any width."""

import gc

import pytest
from samples import SERVE, make_snapshot
from ui.fake_monitor import FakeMonitor
from ui.terminal.top_kit import seen
from ui.terminal_kit import play

from mpsbar.ui.terminal.keys import KeyLine

pytestmark = pytest.mark.usefixtures("noon")


def test_what_is_offered_is_what_works_on_the_selected_row():
    async def person(p):
        def keys():
            return p.screen().splitlines()[-1]

        assert "f Free F" in keys()
        assert "Connect" not in keys()
        await p.press("end")
        assert "c Connect" in keys()
        assert "f Free F" not in keys()
        await p.press("escape", "a")  # nothing is selected, so there is nothing to choose from
        assert len(p.app.screen_stack) == 1

    play(FakeMonitor(seen()), person)


def test_keys_that_are_no_longer_shown_do_not_stay_in_memory():
    """textual's own footer keeps every one (Textualize/textual#6666)."""

    def count():
        gc.collect()
        return sum(type(each).__name__ == "FooterKey" for each in gc.get_objects())

    async def person(p):
        before = count()
        for _ in range(5):
            for place, key in (("end", "c Connect"), ("home", "f Free F")):
                await p.press(place)
                assert key in p.screen().splitlines()[-1]
        assert count() <= before + 10

    play(FakeMonitor(seen()), person)


def test_several_changes_of_the_keys_are_drawn_once(monkeypatch):
    composed, compose = [], KeyLine.compose
    monkeypatch.setattr(KeyLine, "compose", lambda line: composed.append(line) or compose(line))

    async def person(p):
        assert len(composed) < 5  # while the app starts they change again and again
        composed.clear()
        p.app._offered = frozenset()
        for _ in range(5):
            p.app.query_one(KeyLine).bindings_changed(p.app.screen)
        await p.pilot.pause()
        assert len(composed) == 1

    play(FakeMonitor(seen()), person)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 130])
def test_help_and_quit_are_in_the_last_line_at_any_width(width):
    async def person(p):
        await p.wait_for("? Help")
        line = p.screen().splitlines()[-1]
        assert "? Help q Quit" in line
        assert ("^p" in line) == (width >= 110)

    play(FakeMonitor(seen()), person, (width, 24))


def test_the_last_line_follows_the_width_and_stays_as_it_is_behind_the_help():
    def keys(p):
        return p.screen().splitlines()[-1]

    async def person(p):
        wide = keys(p)
        assert "^p palette" in wide
        await p.press("?")
        assert keys(p) == wide
        await p.show(make_snapshot(processes=(SERVE,)))  # nothing is left that could be freed
        await p.press("q")
        assert "c Connect" in keys(p)
        assert "f Free" not in keys(p)
        for width, has_palette in ((60, False), (120, True)):
            await p.pilot.resize_terminal(width, 24)
            await p.pilot.pause()
            assert ("^p palette" in keys(p)) == has_palette
            assert "? Help q Quit" in keys(p)

    play(FakeMonitor(seen()), person, (120, 24))
