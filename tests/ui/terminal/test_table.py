"""The table on the screen: its cursor, its ends, its colours, at any size."""

import pytest
from samples import SERVE, make_snapshot, make_training
from textual.widgets import DataTable
from ui.fake_monitor import FakeMonitor
from ui.terminal.top_kit import TRAIN, seen
from ui.terminal_kit import play

from mpsbar.core.actions import Free
from mpsbar.core.settings import Settings
from mpsbar.ui.terminal.themes import theme_name

pytestmark = pytest.mark.usefixtures("noon")


def test_many_workers_scroll_and_all_can_be_reached():
    many = make_snapshot(*(make_training(5000 + n, f"w{n}.py") for n in range(60)))

    async def person(p):
        assert "w0.py" in p.screen()
        assert "w59.py" not in p.screen()
        await p.press("end")
        assert "w59.py" in p.screen()
        await p.press("f", "home", "pagedown", "f")
        assert p.asked[0] == Free(5059)
        assert 5002 < p.asked[1].pid < 5020

    play(FakeMonitor(many), person)


def test_nobody_there_says_what_to_do():
    async def person(p):
        assert "To start one: mpsbar run python train.py" in " ".join(p.screen().split())
        await p.press("f", "F", "t", "s", "enter", "o", "end", "up")
        assert p.asked == []

    play(FakeMonitor(make_snapshot()), person)


def test_a_reading_does_not_put_the_cursor_back():
    """A key moves the cursor at once; textual tells of it later, after the reading perhaps."""

    async def person(p):
        table = p.app.main_table
        first = table.cursor_key
        with table.prevent(DataTable.RowHighlighted):  # not yet told
            table.action_cursor_down()
        p.app._take()
        assert table.cursor_key != first
        assert p.app.state.selected == table.cursor_key

    play(FakeMonitor(seen()), person)


def test_the_row_under_the_cursor_is_meant_however_fast_one_types():
    async def person(p):
        await p.type_fast("down", "f")
        assert p.asked == [Free(4712)]

    play(FakeMonitor(seen()), person)


def test_a_process_that_connects_is_no_longer_grey():
    async def person(p):
        before = p.style_of("serve.py").color
        serve = make_training(SERVE.pid, "serve.py", process=SERVE)
        await p.show(make_snapshot(TRAIN, serve, time=1002.0))
        assert p.style_of("serve.py").color != before

    play(FakeMonitor(make_snapshot(TRAIN, processes=(SERVE,))), person)


@pytest.mark.parametrize(
    ("size", "theme"),
    [
        ((40, 10), "dark"), ((30, 8), "light"), ((60, 16), "contrast"), ((100, 30), "light"),
        ((250, 70), "dark"),
    ],
)  # fmt: skip
def test_at_any_size_the_processes_can_be_read(size, theme, tmp_path, monkeypatch):
    """From the start and in every theme that is chosen then."""
    monkeypatch.setenv("MPSBAR_CONFIG_DIR", str(tmp_path))

    async def person(p):
        assert p.app.theme == theme_name(theme)
        for chosen in (theme, "dark", "light", "contrast"):
            p.app.theme = theme_name(chosen)
            await p.pilot.pause()
            assert "train.py" in p.screen()
            assert "6.0 GB" in p.screen()

    play(FakeMonitor(seen()), person, size, Settings(theme=theme))
