"""The menu as data: rows with actions, which front ends only draw; str() is its text. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mpsbar.core.actions import Action, FindTensors
from mpsbar.core.addresses import DEFAULT_ADDRESS, ExportState
from mpsbar.core.settings import Settings
from mpsbar.core.torch_facts import NativeOperations
from mpsbar.ui.text.cells import pad

# The columns of a row printed as text: name, device, size; notes follow.
WIDTHS = (28, 9, 8)
BAR_CELLS = 5


@dataclass(frozen=True, slots=True)
class Row:
    """One line; `key` stays the same while the text changes. Without actions and children it can
    only be read."""

    key: str
    text: str  # the whole line, as it is read out
    cells: tuple[str, ...] = ()  # the same in columns, where they can be drawn
    share: float | None = None  # of the memory there is, 0 to 1: a small bar where it can be drawn
    actions: tuple[Action, ...] = ()
    children: tuple["Row", ...] = ()
    tooltip: str = ""
    is_checked: bool = False
    shortcut: str = ""  # with ⌘
    opens: FindTensors | None = None  # performed when its children come into view
    is_heading: bool = False  # of columns: it stays in an open menu
    end_note: str = ""  # shown in an open menu once the row is gone; "": nothing
    room: int = 0  # children to reserve: none can be inserted while the menu is open

    def __str__(self) -> str:
        children = " · ".join(child._briefly() for child in self.children)
        return self._marked() + (f"   ▸ {children}" if children else "")

    def _briefly(self) -> str:
        children = " · ".join(child._briefly() for child in self.children)
        return self._marked() + (f" [{children}]" if children else "")

    def _marked(self) -> str:
        return ("✓ " if self.is_checked else "") + self.line

    @property
    def line(self) -> str:
        if not self.cells:
            return self.text
        name, device, size, *notes = self.cells
        columns = " ".join(
            pad(text, width, to_right)
            for text, width, to_right in zip(
                (name, device, size), WIDTHS, (False, True, True), strict=True
            )
        )
        return (columns + "".join(f"  ({note})" for note in notes if note)).rstrip()

    @property
    def share_bar(self) -> str:
        """Draws `share` in characters that every Mac's fonts have; empty where it is not known."""
        if self.share is None:
            return ""
        full = max(round(self.share * BAR_CELLS), 1 if self.share > 0 else 0)
        return "━" * full + "─" * (BAR_CELLS - full)

    def ended(self) -> "Row":
        """The same row after its process has ended: nothing can be clicked."""
        if self.is_heading:
            return self
        if not self.end_note:
            return replace(self, text="", cells=(), share=None, actions=(), children=(), opens=None)
        name = self.cells[0] if self.cells else self.text
        return replace(
            self,
            text=f"{name.removeprefix('└ ')}, {self.end_note}",
            cells=(name, "", "", self.end_note),
            share=None,
            children=tuple(replace(child, actions=(), opens=None) for child in self.children),
        )


@dataclass(frozen=True, slots=True)
class Bar:
    """The menu bar itself: icon and text."""

    text: str  # "" for the icon alone
    shape: str  # of the icon: "ok", "warning", "critical"; "unknown" for a dot
    is_dot: bool  # the text is a coloured dot, and there is no icon
    label: str  # what VoiceOver says
    tooltip: str


@dataclass(frozen=True, slots=True)
class Menu:
    bar: Bar
    sections: tuple[tuple[Row, ...], ...]  # a line between each two that are not empty

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for section in self.sections for row in section)

    def __str__(self) -> str:
        blocks = ["\n".join(f" {row}" for row in section) for section in self.sections if section]
        head = "⬢" if not self.bar.is_dot else ""
        return "\n".join([" ".join(filter(None, (head, self.bar.text))), "\n ─\n".join(blocks)])


@dataclass(frozen=True, slots=True)
class UiState:
    """What a menu shows beside the snapshot: settings, and what the person asked for."""

    is_clickable: bool = False  # False: the menu is printed as text
    settings: Settings = field(default_factory=Settings)
    login: str | None = None  # "on", "off", "needs_approval", "unavailable"; None: not known yet
    is_reporting: bool = False  # a report is being made
    most: int = 20  # rows of processes: what fits on the smallest screen
    watched: frozenset[tuple[int, float | None]] = frozenset()  # (pid, start): notify at its end
    delivery: str = "unknown"  # what becomes of alerts: core.machine.Delivery
    export: ExportState | None = None  # None: this front end serves no metrics
    export_address: str = DEFAULT_ADDRESS  # where, when they are turned on
    pythons: tuple[str, ...] | None = None  # with a framework; None: not looked for yet
    enabled: tuple[str, ...] | None = None  # the Pythons that are connected; None: not read yet
    home: str = ""  # the person's home folder, shown as ~
    # What MPS has, for the submenus of ended processes; empty where those are not shown.
    read_native: Callable[[], NativeOperations] = lambda: NativeOperations({}, (0, 0))
    has_tool: bool = False  # the app contains the command line tool, and can install it
