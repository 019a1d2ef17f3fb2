"""The themes of `mpsbar top` on textual's theme system, and the colours that charts are made of."""

from collections.abc import Mapping

from rich.style import Style
from textual.color import Color, Gradient
from textual.theme import Theme

_PREFIX = "mpsbar-"
# Their names are the values of the setting `theme`.
THEMES = (
    Theme(
        "mpsbar-dark", primary="#7aa2f7", secondary="#5d7299", accent="#7dcfff", success="#8fce8f",
        warning="#e5b567", error="#ef6f7b", foreground="#d3d9e3", background="#10141b",
        surface="#10141b", panel="#1b222d", dark=True,
        variables={
            "allocated": "#5b8ff9", "cached": "#58c4bc", "other": "#a98be0", "footprint": "#39445a",
            "low": "#5fae8b", "middle": "#d9b25f", "high": "#e8697a", "quiet": "#7d8899",
            "border": "#2f3a4a", "footer-background": "#1b222d", "footer-key-foreground": "#7dcfff",
            "block-cursor-background": "#2c3a55", "block-cursor-foreground": "#ffffff",
            "block-cursor-text-style": "bold",
        },
    ),
    Theme(
        "mpsbar-light", primary="#2f5fc4", secondary="#6a7a94", accent="#0f7ea3", success="#2e7d4f",
        warning="#8f5d00", error="#b3243a", foreground="#22272e", background="#fbfaf7",
        surface="#fbfaf7", panel="#eceae3", dark=False,
        variables={
            "allocated": "#3d6fd6", "cached": "#2aa198", "other": "#8a63c9", "footprint": "#c9ced8",
            "low": "#3c8f63", "middle": "#b98412", "high": "#c43a4e", "quiet": "#66707d",
            "border": "#cfccc2", "footer-background": "#eceae3", "footer-key-foreground": "#0f5f7e",
            "block-cursor-background": "#d5e0f7", "block-cursor-foreground": "#10141b",
            "block-cursor-text-style": "bold",
        },
    ),
    # Okabe and Ito's colours, which people with any kind of colour vision tell apart.
    Theme(
        "mpsbar-contrast", primary="#56b4e9", secondary="#ffffff", accent="#f0e442",
        success="#56b4e9", warning="#f0e442", error="#ff8c42", foreground="#ffffff",
        background="#000000", surface="#000000", panel="#1c1c1c", dark=True,
        variables={
            "allocated": "#0072b2", "cached": "#e69f00", "other": "#cc79a7", "footprint": "#999999",
            "low": "#56b4e9", "middle": "#f0e442", "high": "#d55e00", "quiet": "#d0d0d0",
            "border": "#ffffff", "footer-background": "#1c1c1c", "footer-key-foreground": "#f0e442",
            "block-cursor-background": "#003f66", "block-cursor-foreground": "#ffffff",
            "block-cursor-text-style": "bold",
        },
    ),
)  # fmt: skip
# The colours of the levels of reasons and notes.
LEVEL_STYLES = {"ok": "success", "warning": "warning", "critical": "error"}
# What textual's own themes, which do not have them, use instead.
_INSTEAD = {
    "allocated": "primary", "cached": "accent", "other": "secondary", "footprint": "panel",
    "low": "success", "middle": "warning", "high": "error",
}  # fmt: skip


def build_defaults(theme: Theme) -> dict[str, str]:
    """Returns our names for colours, from those that every theme has."""
    colours = theme.to_color_system().generate()
    ground, letters = (Color.parse(colours[name]) for name in ("background", "foreground"))
    quiet = letters if letters.ansi is not None else ground.blend(letters, 0.6)
    return {name: colours[other] for name, other in _INSTEAD.items()} | {"quiet": quiet.css}


def theme_name(setting: str) -> str:
    return _PREFIX + setting


def setting_name(theme: str) -> str | None:
    """Returns the setting's value, or None for a theme of textual's own, which is not saved."""
    return theme.removeprefix(_PREFIX) if theme.startswith(_PREFIX) else None


class Palette:
    """The colours of one theme as styles; without colour each differs by weight or shape.

    Styles are kept: some hundred are asked for at each refresh.
    """

    def __init__(self, colours: Mapping[str, str], has_colour: bool) -> None:
        self.colours, self.has_colour = colours, has_colour
        self._styles: dict[tuple[str, str, bool], Style] = {}
        self._loads: dict[int, Style] = {}

    def style(self, name: str, background: str = "", bold: bool = False) -> Style:
        found = self._styles.get((name, background, bold))
        if found is None:
            found = self._styles[name, background, bold] = self._build(name, background, bold)
        return found

    def load(self, part: float) -> Style:
        """Returns the colour of a share: stronger as it grows, in 20 steps."""
        step = round(min(max(part, 0.0), 1.0) * 20)
        found = self._loads.get(step)
        if found is None:
            found = self._loads[step] = self._build_load(step)
        return found

    def _build(self, name: str, background: str, bold: bool) -> Style:
        if not self.has_colour:
            return _PLAIN.get(name, Style()) + Style(bold=bold or None)
        is_match = name == "match"
        colour = self.colours.get("accent" if is_match else name) if name else None
        return Style(
            color=colour,
            bgcolor=self.colours[background] if background else None,
            bold=bold or is_match or None,
            underline=is_match or None,
        )

    def _build_load(self, step: int) -> Style:
        if not self.has_colour:
            return Style()
        low, middle, high = (Color.parse(self.colours[key]) for key in ("low", "middle", "high"))
        gradient = Gradient((0.0, low), (0.6, middle), (1.0, high))
        return Style(color=gradient.get_rich_color(step / 20))


_PLAIN = {
    "quiet": Style(dim=True), "warning": Style(bold=True), "error": Style(bold=True),
    "accent": Style(bold=True), "match": Style(underline=True, bold=True),
}  # fmt: skip


def make_palette(variables: Mapping[str, str], has_colour: bool) -> Palette:
    names = [*_INSTEAD, "quiet", "foreground", "primary", "accent", "success", "warning", "error"]
    return Palette({name: Color.parse(variables[name]).hex6 for name in names}, has_colour)
