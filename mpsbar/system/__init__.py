"""This computer: what can be read of it and of its processes without anyone's cooperation."""

import os
import sys

from mpsbar.system.platform import Computer


def this_computer() -> Computer:
    """The one place that asks which platform this is; $MPSBAR_REPLAY names a recorded one."""
    if name := os.environ.get("MPSBAR_REPLAY"):
        from mpsbar.system import replay

        return replay.Computer(replay.read_recording(name))
    if sys.platform == "darwin":
        from mpsbar.system import macos

        return macos.Computer()
    from mpsbar.system import linux

    return linux.Computer()
