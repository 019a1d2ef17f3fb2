"""macOS, read in-process and without root: libproc, sysctl, IOKit and one number of Metal's.

No Mac has run this: tests/machine/fakemac is what it was seen with.
"""

from mpsbar.machine.macos.computer import Computer

__all__ = ["Computer"]
