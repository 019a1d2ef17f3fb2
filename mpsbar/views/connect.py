"""How to connect a process that is not: exactly what to type. Pure."""

import shlex
from typing import Literal

Kind = Literal["script", "notebook", "server"]


def how_to_connect(python: str, kind: Kind) -> str:
    """The text for one interpreter and kind of process; nothing reaches a running one."""
    enable = f"mpsbar enable --python {shlex.quote(python)}"
    return {
        "script": f"{enable}, then start it again (or once: mpsbar run {_command(python)} …)",
        "notebook": f"{enable} && mpsbar enable --jupyter, then restart the kernel",
        "server": f"{enable}, then restart the server",
    }[kind]


def _command(python: str) -> str:
    return shlex.quote(python)
