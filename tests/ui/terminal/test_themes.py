"""Themes on the screen: chosen, kept, and no colour where none is wanted."""

import pytest
from ui.fake_monitor import FakeMonitor
from ui.terminal.top_kit import seen
from ui.terminal_kit import play

pytestmark = pytest.mark.usefixtures("noon")


def test_no_colour_where_none_is_wanted(monkeypatch):
    async def colours(p):
        strips = p.app.screen._compositor.render_strips()
        styles = [segment.style for strip in strips for segment in strip if segment.style]
        return {style.color.name for style in styles if style.color and not style.color.is_default}

    async def with_colour(p):
        assert "#5b8ff9" in await colours(p)

    async def without(p):
        assert await colours(p) == set()

    play(FakeMonitor(seen()), with_colour)
    monkeypatch.setenv("NO_COLOR", "1")
    play(FakeMonitor(seen()), without)


def test_a_theme_that_is_chosen_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path))

    async def person(p):
        p.app.theme = "mpsbar-light"
        await p.wait_until(lambda: p.monitor.settings.theme == "light")
        assert p.app.state.ui_state.settings.theme == "light"

    play(FakeMonitor(seen()), person)


def test_every_theme_of_textual_can_be_chosen(tmp_path, monkeypatch):
    """They have none of our names for colours."""
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path))

    async def person(p):
        for name in p.app.available_themes:
            p.app.theme = name
            await p.pilot.pause()
            assert "train.py" in p.screen(), name

    play(FakeMonitor(seen()), person)


def test_a_theme_changes_the_colour_of_every_text(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path))

    async def person(p):
        before = p.style_of("serve.py").color
        p.app.theme = "mpsbar-light"
        await p.wait_until(lambda: p.style_of("serve.py").color != before)
        assert p.style_of("serve.py").color == p.app.palette.style("quiet").color != before

    play(FakeMonitor(seen()), person)
