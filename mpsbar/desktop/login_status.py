"""What can be said of starting at login, the same for every owner."""

from dataclasses import dataclass
from typing import Literal

LoginState = Literal["on", "off", "needs_approval", "unavailable"]
Owner = Literal["app", "agent", "autostart"]
Why = Literal[
    "disk_image",  # the app runs from the image it came in
    "translocated",  # macOS runs a downloaded app from a secret place until it is moved
    "old_macos",
    "refused",  # by the system, whose words are the detail
    "foreign",  # a file under our name that we did not write
    "not_written",  # the detail is the system's reason
    "command_gone",  # the detail is its path
    "temporary_command",  # in a cache that is emptied some day; the detail is its path
    "odd_path",  # what the format cannot hold; the detail is the path
    "disabled_by_user",  # in the desktop's own settings
]


@dataclass(frozen=True, slots=True)
class LoginStatus:
    state: LoginState
    owner: Owner
    where: str | None = None  # the file that does it, or would
    why: Why | None = None
    detail: str | None = None
