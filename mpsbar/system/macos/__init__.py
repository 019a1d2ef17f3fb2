"""macOS, read in-process and without root: libproc, sysctl, IOKit, psutil and Metal's budget.

No Mac has run this yet: it was tested with tests/system/fakemac.
"""

from mpsbar.system.macos.computer import MacComputer

__all__ = ["MacComputer"]
