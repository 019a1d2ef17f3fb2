"""The terminal app under textual's Pilot: what a person does there, and what there is to see."""

import asyncio

from mpsbar.core.settings import Loaded, Settings
from mpsbar.ui.terminal.app import TerminalApp


class TerminalUser:
    def __init__(self, app, pilot, monitor):
        self.app, self.pilot, self.monitor = app, pilot, monitor

    def screen(self):
        """As it stands, line by line."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    def style_of(self, text):
        """Of the first run of characters that holds it."""
        for strip in self.app.screen._compositor.render_strips():
            for segment in strip:
                if text in segment.text:
                    return segment.style
        raise AssertionError(f"{text} is not on the screen:\n{self.screen()}")

    def line(self, start):
        found = [line for line in self.screen().splitlines() if line.lstrip().startswith(start)]
        assert len(found) == 1, (start, self.screen())
        return found[0]

    async def press(self, *keys):
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def show(self, snapshot):
        self.monitor.show(snapshot)
        await self.pilot.pause()

    async def end(self, number, outcome):
        """One of the things asked ends."""
        self.monitor.asked[number][1].set_result(outcome)
        await self.pilot.pause()

    async def click(self, text):
        """The first place on the screen where this stands."""
        for y, line in enumerate(self.screen().splitlines()):
            if text in line:
                await self.pilot.click(offset=(line.index(text), y))
                await self.pilot.pause()
                return
        raise AssertionError(f"{text} is not on the screen:\n{self.screen()}")

    @property
    def asked(self):
        return [action for action, _ in self.monitor.asked]


def play(monitor, person, size=(80, 24), settings=None):
    async def whole():
        loaded = Loaded(settings or Settings(), "settings.toml")
        monitor.apply(loaded.settings)
        app = TerminalApp(monitor, loaded)
        monitor.start(app.on_tick)
        async with app.run_test(size=size) as pilot:
            while not app.query_one("#head").lines:
                await pilot.pause(0.01)
            await pilot.pause()
            await person(TerminalUser(app, pilot, monitor))

    asyncio.run(whole())
