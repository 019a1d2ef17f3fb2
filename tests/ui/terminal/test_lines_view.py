"""Lines that are painted where they differ, and an update that asks only the widgets that changed."""

import asyncio

from rich.segment import Segment
from rich.text import Text
from textual.app import App
from textual.geometry import Offset
from textual.selection import Selection
from ui.terminal_kit import run_app

from mpsbar.ui.terminal.base_app import MainScreen
from mpsbar.ui.terminal.drawing import make_text
from mpsbar.ui.terminal.lines_view import LinesView, group_lines


class Sample(App[None]):
    CSS = "LinesView { height: 4; padding: 0 1; }"

    def get_default_screen(self):
        return MainScreen()

    def compose(self):
        yield LinesView(id="one")
        yield LinesView(id="two", is_selectable=True)


def show(person):
    async def whole():
        app = Sample()
        async with run_app(app, (20, 8)) as pilot:
            await person(app, pilot)

    asyncio.run(whole())


def read(app):
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]


def test_neighbouring_lines_are_one_region():
    assert list(group_lines([1, 2, 3, 7, 9, 10])) == [(1, 3), (7, 1), (9, 2)]
    assert list(group_lines([])) == []


def test_only_lines_that_differ_are_painted_and_only_widgets_that_changed_are_asked():
    asked = []

    async def person(app, pilot):
        one, two = app.query(LinesView)
        one.show_lines([Text("a"), Text("b"), [Segment("c")]])
        two.show_lines([Text("x")])
        await pilot.pause()
        assert read(app) == [" a", " b", " c", "", " x", "", "", ""]
        for view in (one, two):

            def render(crop, view=view, known=view.render_lines):
                asked.append(view.id)
                return known(crop)

            view.render_lines = render
        kept = one.render_lines(one.size.region)
        asked.clear()
        one.show_lines([Text("a"), Text("B"), [Segment("c")]])
        assert [region.y for region in one._repaint_regions] == [1]
        await pilot.pause()
        assert set(asked) == {"one"}
        assert read(app) == [" a", " B", " c", "", " x", "", "", ""]
        now = one.render_lines(one.size.region)
        assert [now[y] is kept[y] for y in range(3)] == [True, False, True]
        asked.clear()
        one.show_lines([Text("a"), Text("B"), [Segment("c")]])
        await pilot.pause()
        assert asked == []

    show(person)


def test_a_style_without_spans_and_another_style_of_the_same_words_are_painted():
    async def person(app, pilot):
        view = app.query_one("#one")
        for colour in ("#112233", "#445566"):
            view.show_lines([make_text("word", colour)])
            await pilot.pause()
            found = [s for s in view.render_lines(view.size.region)[0] if "word" in s.text]
            assert found[0].style.color.name == colour

    show(person)


def test_the_text_of_a_selectable_one_can_be_selected_and_copied():
    async def person(app, pilot):
        one, two = app.query(LinesView)
        two.show_lines([make_text("python train.py"), make_text("more")])
        await pilot.pause()
        assert (one.allow_select, two.allow_select) == (False, True)
        app.screen.selections = {two: Selection(Offset(7, 0), Offset(2, 1))}
        await pilot.pause()
        assert app.screen.get_selected_text() == "train.py\nmo"
        plain, marked = (
            next(
                s.style.bgcolor
                for s in two.render_lines(two.outer_size.region)[0]
                if word in s.text
            )
            for word in ("python", "train.py")
        )
        assert plain != marked

    show(person)


def test_the_mouse_selects_what_it_moves_over():
    async def person(app, pilot):
        two = app.query_one("#two")
        two.show_lines([make_text("python 훈련.py"), make_text("more")])
        await pilot.pause()
        # The text begins behind one column of padding; 훈 and 련 are two columns wide each.
        await pilot.mouse_down(two, offset=(1 + 7, 0))
        await pilot.hover(two, offset=(1 + 9, 0))
        await pilot.pause()
        assert app.screen.get_selected_text() == "훈련"
        await pilot.hover(two, offset=(1 + 1, 1))
        await pilot.mouse_up(two, offset=(1 + 1, 1))
        await pilot.pause()
        assert app.screen.get_selected_text() == "훈련.py\nmo"

    show(person)
