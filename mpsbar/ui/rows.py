"""A menu as data: rows with what a click asks for. Front ends only draw them; str() reads well."""

from dataclasses import dataclass, replace

from mpsbar.core.actions import Action, FindTensors

# Of a row in columns, for a terminal: name, device, size; what follows is as long as it is.
WIDTHS = (28, 9, 8)


@dataclass(frozen=True, slots=True)
class Row:
    """One line; `key` stays the same while the text changes. No actions, no children: only text."""

    key: str
    text: str  # the whole line, as it is read out
    cells: tuple[str, ...] = ()  # the same in columns, where they can be drawn
    actions: tuple[Action, ...] = ()
    children: tuple["Row", ...] = ()
    tooltip: str = ""
    is_checked: bool = False
    shortcut: str = ""  # with ⌘
    opens: FindTensors | None = None  # asked when its children come into view
    end_note: str = ""  # what it says once it is gone while someone looks; "": nothing
    room: int = 0  # children that may come while it is open, so that none must be inserted

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
        columns = f"{name:{WIDTHS[0]}} {device:>{WIDTHS[1]}} {size:>{WIDTHS[2]}}"
        return (columns + "".join(f"  ({note})" for note in notes if note)).rstrip()

    def ended(self) -> "Row":
        """The same when what it was about is no more: nothing is left to click."""
        if not self.end_note:
            return replace(self, text="", cells=(), actions=(), children=(), opens=None)
        name = self.cells[0] if self.cells else self.text
        return replace(
            self,
            text=f"{name.removeprefix('└ ')}, {self.end_note}",
            cells=(name, "", "", self.end_note),
            children=tuple(replace(child, actions=(), opens=None) for child in self.children),
        )


@dataclass(frozen=True, slots=True)
class Bar:
    """What stands in the menu bar itself."""

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
