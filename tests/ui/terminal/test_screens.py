"""The screens over the table: what is behind them is dimmed, and all of them can be read."""

import pytest
from textual.color import Color
from ui.fake_monitor import FakeMonitor
from ui.terminal.top_kit import build_series, seen
from ui.terminal_kit import play

from mpsbar.ui.terminal.keys import KEYS, list_help
from mpsbar.ui.terminal.themes import theme_name

pytestmark = pytest.mark.usefixtures("noon")


def test_what_is_behind_the_help_is_dimmed_and_follows(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path))  # a theme is kept there
    first, *_others, last = build_series()

    def colour_of(p, text):
        return Color.from_rich_color(p.style_of(text).color)

    async def person(p):
        plain = colour_of(p, "2.4 GB held")
        await p.press("?")
        assert "this help" in p.screen()
        dimmed = colour_of(p, "2.4 GB held")
        assert dimmed == plain + p.app.screen.styles.background
        assert not any(s.style.meta for s in p.app.screen._compositor.render_strips()[0])
        line = p.app.screen.render_line(0)
        p.app.screen.refresh()  # its own: what is behind is not drawn again
        assert p.app.screen.render_line(0) is line
        await p.show(last)
        assert "2.4 GB held" not in p.screen()
        assert colour_of(p, "7.4 GB held") == dimmed
        p.app.theme = theme_name("light")
        await p.pilot.pause()
        light = colour_of(p, "7.4 GB held")
        await p.press("q")
        assert colour_of(p, "7.4 GB held") != light != dimmed

    play(FakeMonitor(first), person, (120, 40))


@pytest.mark.parametrize("size", [(40, 10), (80, 24), (120, 40)])
def test_the_help_can_be_read_to_its_end_and_a_question_answered_at_any_size(size):
    async def person(p):
        await p.press("?")
        read = p.screen()
        for _ in range(14):
            await p.press("pagedown")
            read += "\n" + p.screen()
        words = {word for line in list_help(KEYS) for word in line.split()}
        assert words <= set(read.replace("│", " ").split())
        assert "?: unknown" in p.screen()
        await p.press("q", "s")
        assert "Cancel" in p.screen()
        await p.click("Cancel")
        assert "Cancel" not in p.screen()

    play(FakeMonitor(seen()), person, size)
