"""The filter: what it keeps, and keys typed fast around it."""

import pytest
from ui.fake_monitor import FakeMonitor
from ui.terminal.top_kit import seen
from ui.terminal_kit import play

from mpsbar.core.actions import Free

pytestmark = pytest.mark.usefixtures("noon")


def test_the_filter_keeps_what_contains_it():
    async def person(p):
        await p.press("slash", *"TRain")
        assert "\nTRain" in p.screen()
        assert "serve.py" not in p.screen()
        await p.press("enter")
        assert [row.key for row in p.app.state.rows] == ["process-4711"]
        assert "underline" in str(p.style_of("train"))
        await p.press("f")
        assert p.asked == [Free(4711)]
        await p.press("slash", *"zz")
        assert "No rows contain “TRainzz”" in p.screen()
        await p.press("backspace", "backspace", "q")  # a letter here, not the end
        assert "TRainq" in p.screen()
        await p.press("escape")
        assert "serve.py" in p.screen()

    play(FakeMonitor(seen()), person)


def test_letters_typed_fast_behind_the_slash_are_the_filters():
    async def person(p):
        await p.type_fast("slash", "s", "f")
        assert (p.app.state.filter, p.asked) == ("sf", [])

    play(FakeMonitor(seen()), person)


@pytest.mark.parametrize("leave", ["enter", "down"])
def test_a_key_typed_fast_behind_the_filter_is_about_the_row_that_was_found(leave):
    async def person(p):
        await p.type_fast("slash", *"kernel", leave, "f")
        assert (p.app.state.filter, p.asked) == ("kernel", [Free(4712)])

    play(FakeMonitor(seen()), person)


def test_a_key_typed_fast_behind_the_end_of_the_filter_is_not_in_it():
    async def person(p):
        await p.type_fast("slash", *"kernel", "escape", "f")
        assert (p.app.state.filter, len(p.asked)) == ("", 1)

    play(FakeMonitor(seen()), person)
