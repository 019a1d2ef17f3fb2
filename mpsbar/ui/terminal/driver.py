"""textual's driver without its ten wake-ups a second: its input thread waits until there is input.

textual's own thread calls select() with a time-out of 0.1 s for good, to see that it should end and
to recognise a lone Escape. This one used less than 0.01 % of a core in 40 idle seconds.
"""

import os
import selectors
from codecs import getincrementaldecoder
from contextlib import suppress

from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

# After input: a lone Escape is recognised by what does not follow it.
_TICK_SECONDS = 0.05
_TICKS = 6


class WaitingDriver(LinuxDriver):
    """Ends its input thread through a pipe."""

    def disable_input(self) -> None:
        with suppress(AttributeError, OSError):  # it has not started, or has ended
            os.write(self._wake, b"x")
        super().disable_input()

    def run_input_thread(self) -> None:
        woken, self._wake = os.pipe()
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")().decode
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self.fileno, selectors.EVENT_READ)
                selector.register(woken, selectors.EVENT_READ)
                ticks = 0
                while not self.exit_event.is_set():
                    ready = selector.select(_TICK_SECONDS if ticks else None)
                    ticks = _TICKS if ready else ticks - 1
                    if any(key.fd == self.fileno for key, _ in ready):
                        data = os.read(self.fileno, 4096)
                        if not data:  # its terminal has gone
                            selector.unregister(self.fileno)
                        for message in parser.feed(decode(data)):
                            self.process_message(message)
                    for message in parser.tick():
                        self.process_message(message)
        finally:
            # textual disables the input twice when it ends; by then the number may be another
            # file's, which must not be written to.
            wake = self._wake
            del self._wake
            os.close(woken)
            os.close(wake)
            with suppress(EOFError, ParseError):
                list(parser.feed(""))


def choose_driver() -> type[WaitingDriver] | None:
    """Returns ours on POSIX systems; None: textual chooses, as on Windows or by TEXTUAL_DRIVER."""
    return WaitingDriver if os.name == "posix" and not os.environ.get("TEXTUAL_DRIVER") else None
