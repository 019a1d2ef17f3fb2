"""Is an app still what was signed? macOS's own codesign says so."""

import os

from mpsbar.desktop.command import run_command

CODESIGN = b"/usr/bin/codesign"
_SECONDS = 120.0  # every file is read


def verify(app: str, program: bytes = CODESIGN) -> str | None:
    """None when all is well, else its own words."""
    command = [program, b"--verify", b"--deep", b"--strict", b"--", os.fsencode(app)]
    return run_command(command, seconds=_SECONDS)
