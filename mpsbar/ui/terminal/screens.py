"""The screens that open over the table: question, choice, field, text, table, and detail."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.geometry import Region
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widgets import Button, DataTable, Input, OptionList, Static

from mpsbar.language import _
from mpsbar.ui.terminal.detail import ChartView
from mpsbar.ui.terminal.drawing import is_same_text, make_text, make_wrapped
from mpsbar.ui.terminal.lines_view import LinesView
from mpsbar.ui.text.dialogs import Dialog

_FIELD_LENGTH = 40
_CLOSE: list[BindingType] = [Binding("escape,q", "dismiss", show=False)]
_Result = TypeVar("_Result")


class DimmedModalScreen(ModalScreen[_Result]):
    """A modal screen that dims the screen behind it only when that has changed.

    textual dims it five times while one opens, half the cost of opening.
    """

    def __init__(self) -> None:
        super().__init__()
        self._behind: list[Strip] = []
        self._drawn_for: object = None  # what is behind depends on this too

    def refresh(self, *regions: Region, **options: Any) -> "DimmedModalScreen[_Result]":
        if regions:  # regions of the screen behind that have changed
            self._drawn_for = None
        super().refresh(*regions, **options)
        return self

    def render_line(self, y: int) -> Strip:
        colour = self.styles.background
        layout = (self.size, colour, self.app.theme)
        if layout != self._drawn_for:
            self._drawn_for, self._behind = layout, self._draw_behind(colour)
        return self._behind[y] if y < len(self._behind) else Strip([])

    def _draw_behind(self, colour: Color) -> list[Strip]:
        screens = self.app.screen_stack
        below = screens[screens.index(self) - 1]._compositor.render_strips()
        return [
            Strip([Segment(text, _dim(style or Style(), colour)) for text, style, _ in strip])
            for strip in below
        ]


@lru_cache(2048)
def _dim(style: Style, colour: Color) -> Style:
    """Dims colours as textual does."""
    (dimmed,) = BackgroundScreen.process_segments([Segment("", style)], colour)
    return dimmed.style or style


class AskScreen(DimmedModalScreen[int | None]):
    """A question; the last button, which changes nothing, has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(0)", show=False),
        Binding("escape,n,q", "dismiss", show=False),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
    ]

    def __init__(self, question: Dialog) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        with Vertical(classes="box ask"):
            yield Static(make_wrapped(self.question.title, "bold"), classes="title")
            with VerticalScroll(can_focus=False):
                yield Static(make_wrapped(self.question.text))
            with Horizontal(classes="buttons"):
                for number, label in enumerate(self.question.buttons):
                    yield Button(Text(label), id=f"answer-{number}", compact=True)

    def on_mount(self) -> None:
        list(self.query(Button))[-1].focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(int((event.button.id or "").removeprefix("answer-")))

    def action_answer(self, number: int) -> None:
        self.dismiss(number)


class ChoiceScreen(DimmedModalScreen[int | None]):
    """A list to choose from; the cursor starts at the choice that is set."""

    BINDINGS: ClassVar[list[BindingType]] = _CLOSE

    def __init__(self, title: str, choices: Sequence[str], at: int = 0) -> None:
        super().__init__()
        self.heading, self.choices, self.at = title, choices, at

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Static(make_text(self.heading, "bold"), classes="title")
            yield OptionList(*(make_text(choice) for choice in self.choices))

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = self.at

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)


class FieldScreen(DimmedModalScreen[str | None]):
    """A text that can be changed: Enter takes it, Esc changes nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", show=False)]

    def __init__(self, question: Dialog, text: str) -> None:
        super().__init__()
        self.question, self.text = question, text

    def compose(self) -> ComposeResult:
        with Vertical(classes="box ask"):
            yield Static(make_wrapped(self.question.title, "bold"))
            yield Static(make_wrapped(self.question.text))
            yield Input(self.text, max_length=_FIELD_LENGTH, compact=True)
            yield Static(make_text(_("Enter to set, Esc to cancel"), "dim"))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class LiveScreen(DimmedModalScreen[None]):
    """A screen that changes with each snapshot."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *_CLOSE,
        Binding("up,k", "scroll_up", show=False),
        Binding("down,j", "scroll_down", show=False),
    ]

    def show(self) -> None:
        raise NotImplementedError

    def on_mount(self) -> None:
        self.call_after_refresh(self.show)

    def action_scroll_up(self) -> None:
        self.query_one(VerticalScroll).scroll_up(animate=False)

    def action_scroll_down(self) -> None:
        self.query_one(VerticalScroll).scroll_down(animate=False)


class TextScreen(LiveScreen):
    """Lines to read, such as the help or the largest tensors."""

    def __init__(self, title: str, render: Callable[[], Text]) -> None:
        super().__init__()
        self.heading, self._render_text = title, render
        self._shown = Text()

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Static(make_text(self.heading, "bold"), classes="title")
            with VerticalScroll():
                self._shown = self._render_text()
                yield Static(self._shown, id="text")

    def show(self) -> None:
        text = self._render_text()
        if not is_same_text(text, self._shown):
            self._shown = text
            self.query_one("#text", Static).update(text)


class TableScreen(DimmedModalScreen[None]):
    """A table to read, such as that of the dtypes."""

    BINDINGS: ClassVar[list[BindingType]] = _CLOSE

    def __init__(self, title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        super().__init__()
        self.heading, self._headers, self._rows = title, headers, rows

    def compose(self) -> ComposeResult:
        with Vertical(classes="box large"):
            yield Static(make_text(self.heading, "bold"), classes="title")
            yield DataTable[Text](cursor_type="row")

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        table.add_columns(*self._headers)
        table.add_rows([make_text(cell) for cell in row] for row in self._rows)


class DetailScreen(LiveScreen):
    """One process, or the machine, in the whole window."""

    def __init__(self, draw: Callable[[ChartView, LinesView], None]) -> None:
        super().__init__()
        self._draw_into = draw

    def compose(self) -> ComposeResult:
        with Vertical(classes="box full"):
            yield ChartView(id="large-chart")
            with VerticalScroll():
                yield LinesView(id="large-facts", is_selectable=True)

    def show(self) -> None:
        self._draw_into(
            self.query_one("#large-chart", ChartView), self.query_one("#large-facts", LinesView)
        )

    def on_resize(self) -> None:
        self.call_after_refresh(self.show)
