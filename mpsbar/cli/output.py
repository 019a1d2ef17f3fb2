"""What output goes to, and what a verb may therefore write: colours, a line of progress."""

import os
import sys

INTERRUPTED = 130  # the exit code after Ctrl-C, as a shell has it


def is_terminal() -> bool:
    """Whether a person is there who sees and types."""
    # textual draws on stderr.
    streams = (sys.stdin, sys.stdout, sys.stderr)
    is_there = all(stream is not None and stream.isatty() for stream in streams)
    return is_there and os.environ.get("TERM", "dumb") != "dumb"


def is_coloured() -> bool:
    """On a terminal, unless the user wants no colours (no-color.org)."""
    is_wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return is_wanted and sys.stdout.isatty()


def show_progress(text: str) -> None:
    """Replace the one line of progress, if errors go to a terminal; "" removes it."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
