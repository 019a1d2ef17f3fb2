"""What a front end itself knows beside the snapshot: its settings, and what it was asked."""

from dataclasses import dataclass, field

from mpsbar.core.settings import Settings


@dataclass(frozen=True, slots=True)
class UiState:
    is_app: bool = False  # there is someone to click
    settings: Settings = field(default_factory=Settings)
    login: str | None = None  # "on", "off", "needs_approval", "unavailable"; None: not known yet
    is_reporting: bool = False  # a report is being made
    most: int = 20  # rows of processes: what fits on the smallest screen
    watched: frozenset[tuple[int, float | None]] = frozenset()  # pid and start of who may end
    has_tool: bool = False  # the app brings the command along, and can install it
