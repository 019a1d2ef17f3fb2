"""macOS, read in-process and without root: libproc, sysctl, IOKit, psutil, one number of Metal's.

No Mac has run this: tests/system/fakemac is what it was seen with.
"""

from mpsbar.system.macos.computer import Computer

__all__ = ["Computer"]
