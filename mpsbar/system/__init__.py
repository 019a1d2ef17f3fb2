"""This computer and its processes, as far as they can be read without their cooperation."""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `status --format` needs paths and files only
    from mpsbar.system.platform import Computer


def this_computer() -> "Computer":
    """Chooses the platform; $MPSBAR_REPLAY names a recorded machine."""
    if name := os.environ.get("MPSBAR_REPLAY"):
        from mpsbar.system import replay

        return replay.RecordedComputer(replay.read_recording(name))
    if sys.platform == "darwin":
        from mpsbar.system import macos

        return macos.MacComputer()
    from mpsbar.system import linux

    return linux.LinuxComputer()
