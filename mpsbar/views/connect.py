"""How to connect a process that is not: exactly what to type. Pure."""

import shlex

from mpsbar.model.naming import Kind


def how_to_connect(python: str, kind: Kind) -> str:
    """The text for one interpreter and kind of process; nothing reaches a running one."""
    python = shlex.quote(python)
    enable = f"mpsbar enable --python {python}"
    return {
        "script": f"{enable}, then start it again (or once: mpsbar run {python} …)",
        "notebook": f"{enable} && mpsbar enable --jupyter, then restart the kernel",
        "server": f"{enable}, then restart the server",
    }[kind]
