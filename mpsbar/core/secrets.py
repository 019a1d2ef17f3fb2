"""Takes passwords and keys out of texts: the agent's, which does it where it leaves a record."""

from mpsbar.agent.secrets import (
    LEFT_OUT,
    MASK,
    cut_options,
    find_module,
    has_value,
    is_code,
    mask,
    shorten_command,
    shorten_title,
)

__all__ = [
    "LEFT_OUT", "MASK", "cut_options", "find_module", "has_value", "is_code", "mask",
    "shorten_command", "shorten_title",
]  # fmt: skip
