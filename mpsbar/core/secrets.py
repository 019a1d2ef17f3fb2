"""The agent's masking of passwords and keys, under a name that the monitor may import."""

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
