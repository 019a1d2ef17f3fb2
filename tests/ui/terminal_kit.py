"""The terminal apps under textual's Pilot: what a person does there, and what there is to see."""

import asyncio
import time
import unicodedata
from contextlib import asynccontextmanager

from textual import events
from textual.keys import REPLACED_KEYS, _character_to_key, _get_unicode_name_from_key
from worker_kit import TIMEOUT

from mpsbar.core.settings import LoadedSettings, Settings
from mpsbar.ui.terminal.app import TerminalApp


async def settle(app):
    """Until nothing is left to do: no message is handled or waits, and all of it is drawn.

    Pilot's own pause ends when the process has used no CPU for 20 ms, as it has on a busy machine.
    What a timer or another thread will bring is not waited for: see `wait_until`.
    """
    loop, end = asyncio.get_running_loop(), time.monotonic() + TIMEOUT
    await asyncio.sleep(0)
    while app._exception is None and app.is_running:
        assert time.monotonic() < end, "the app is still busy"
        if loop._ready:
            await asyncio.sleep(0)
        elif app.animator._animations or app.animator._scheduled:
            await asyncio.sleep(0.005)
        elif _has_to_draw(app.screen):
            app.screen._on_timer_update()
            await asyncio.sleep(0)
        else:
            return


def _has_to_draw(screen):
    """What textual's own timer would find to do."""
    return (
        screen._layout_required
        or screen._scroll_required
        or screen._repaint_required
        or screen._recompose_required
        or screen._dirty_widgets
        or screen._callbacks
    )


@asynccontextmanager
async def run_app(app, size, **options):
    """A Pilot whose pauses end when the app has nothing left to do."""
    async with app.run_test(size=size, **options) as pilot:

        async def pause(delay=0.0):
            await asyncio.sleep(delay)
            await settle(app)

        pilot.pause = pause
        await settle(app)
        yield pilot


class ScreenUser:
    def __init__(self, app, pilot):
        self.app, self.pilot = app, pilot

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

    async def press(self, *keys):
        for key in keys:
            self.send(key)
            await settle(self.app)

    async def type_fast(self, *keys):
        """All of them before the first is handled."""
        for key in keys:
            self.send(key)
        await settle(self.app)

    def send(self, key):
        if len(key) == 1 and not key.isalnum():
            key = _character_to_key(key)
        try:
            name = _get_unicode_name_from_key(REPLACED_KEYS.get(key, key))
            character = unicodedata.lookup(name)
        except KeyError:
            character = None  # events.Key takes that of a letter from its name
        self.app.post_message(events.Key(key, character))

    async def click(self, text):
        """The first place on the screen where this stands."""
        for y, line in enumerate(self.screen().splitlines()):
            if text in line:
                await self.pilot.click(offset=(line.index(text), y))
                return
        raise AssertionError(f"{text} is not on the screen:\n{self.screen()}")

    async def wait_until(self, is_so):
        """What a timer or another thread does comes when it comes."""
        end = time.monotonic() + TIMEOUT
        while not is_so():
            assert time.monotonic() < end, self.screen()
            await self.pilot.pause(0.01)

    async def wait_for(self, text):
        await self.wait_until(lambda: text in self.screen())

    async def wait_gone(self, text):
        await self.wait_until(lambda: text not in self.screen())


class TerminalUser(ScreenUser):
    def __init__(self, app, pilot, monitor):
        super().__init__(app, pilot)
        self.monitor = monitor

    def line(self, start):
        found = [line for line in self.screen().splitlines() if line.lstrip().startswith(start)]
        assert len(found) == 1, (start, self.screen())
        return found[0]

    async def show(self, snapshot):
        self.monitor.show(snapshot)
        await settle(self.app)

    async def end(self, number, outcome):
        """One of the things asked ends."""
        self.monitor.asked[number][1].set_result(outcome)
        await settle(self.app)

    @property
    def asked(self):
        return [action for action, _ in self.monitor.asked]


def play(monitor, person, size=(80, 24), settings=None):
    async def whole():
        loaded = LoadedSettings(settings or Settings(), "settings.toml")
        monitor.apply(loaded.settings)
        app = TerminalApp(monitor, loaded)
        monitor.start(app.on_tick)
        async with run_app(app, size) as pilot:
            while not app.query_one("#head").lines:
                await pilot.pause(0.01)
            await pilot.pause()
            await person(TerminalUser(app, pilot, monitor))

    asyncio.run(whole())
