"""What all commands share for output: terminal, characters, colors, progress, Ctrl-C, saving."""

import codecs
import io
import os
import shutil
import signal
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from mpsbar.core.errors import reason_of
from mpsbar.language import _

HOME_AND_CLEAR = "\x1b[H\x1b[2J"
INTERRUPTED = 130  # the exit code after Ctrl-C, as in a shell
_Result = TypeVar("_Result")
_HANDLER = "mpsbar-ascii"
_STAND_INS = {
    "·": "-", "×": "x", "–": "-", "—": "-", "−": "-", "→": "->", "←": "<-", "↑": "^", "↓": "v",
    "✓": "+", "✗": "x", "≤": "<=", "≥": ">=", "≠": "!=", "∞": "inf", "µ": "u", "⏎": "Return",
    "⌘": "Cmd-", "‼": "!!", "“": '"', "”": '"', "‘": "'", "’": "'",
    "●": "*", "○": "o", "◐": "*", "■": "#", "⬢": "#", "▲": "^", "▼": "v", "▸": ">",
    "█": "#", "▉": "#", "▊": "#", "▋": "#", "▌": "=", "▍": "-", "▎": "-", "▏": ".",
    "▇": "#", "▆": "#", "▅": "=", "▄": "=", "▃": "-", "▂": "-", "▁": "_",
    "▓": "#", "▒": "=", "░": ".",
    "│": "|", "┃": "|", "║": "|", "─": "-", "━": "-", "═": "=", "└": "`", "┘": "'",
}  # fmt: skip
_BOX_DRAWING = range(0x2500, 0x2580)
_BRAILLE = range(0x2800, 0x2900)  # of textual's charts
_BLOCKS = range(0x2580, 0x25A0)


def is_terminal() -> bool:
    """Returns whether a person sees the output and can type."""
    # stderr counts too: textual draws on it.
    streams = (sys.stdin, sys.stdout, sys.stderr)
    is_there = all(stream is not None and stream.isatty() for stream in streams)
    return is_there and os.environ.get("TERM", "dumb") != "dumb"


def is_coloured() -> bool:
    """Returns whether to use colors: on a terminal, unless the user wants none (no-color.org)."""
    is_wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return is_wanted and sys.stdout.isatty()


def line_width() -> int:
    """Returns the cells in a line: the terminal's or $COLUMNS; 80 in a pipe."""
    return shutil.get_terminal_size().columns


def print_stderr(text: str) -> None:
    """Prints an error or a remark to stderr, so that stdout has only the result."""
    print(text, file=sys.stderr)


def show_progress(text: str) -> None:
    """Replaces the line of progress, if stderr is a terminal; "" removes it."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


@contextmanager
def progress_line() -> Iterator[None]:
    """Removes the line of progress afterwards, also after an error or Ctrl-C."""
    try:
        yield
    finally:
        show_progress("")


def print_each(texts: Iterable[str], as_json: bool) -> None:
    """Prints until Ctrl-C: in place on a terminal, one text after the other in a pipe."""
    in_place = sys.stdout.isatty() and not as_json
    try:
        for text in texts:
            if in_place:
                sys.stdout.write(HOME_AND_CLEAR)
            print(text if in_place or as_json else f"{text}\n", flush=True)
    except KeyboardInterrupt:
        return


def treat_signals_as_ctrl_c() -> None:
    """Lets `kill`, a service manager or a closed terminal end this command as Ctrl-C does.

    Buffered output is then written, and processes that the command started are ended.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, signal.default_int_handler)


def run_cancellable(run: Callable[[], _Result], cancel: Callable[[], None]) -> _Result:
    """Calls `run` on a thread. After Ctrl-C it is canceled, and its partial result is returned."""
    from concurrent.futures import ThreadPoolExecutor

    from mpsbar.system.waiting import wait_for_result

    with ThreadPoolExecutor(1, thread_name_prefix="mpsbar-run") as pool:
        running = pool.submit(run)
        try:
            return wait_for_result(running)
        except KeyboardInterrupt:
            cancel()
            return wait_for_result(running)
        finally:
            cancel()
            show_progress("")


def save_result(write: Callable[[], Path | None]) -> tuple[str | None, bool]:
    """Returns the file and whether saving worked. A result that can't be saved is still shown."""
    try:
        file = write()
    except OSError as error:
        text = reason_of(error)
        print_stderr(_("mpsbar: couldn't save the result: {problem}").format(problem=text))
        return None, False
    return (None if file is None else str(file)), True


def use_plain_characters(stream: object) -> None:
    """Writes ASCII for characters that the stream's encoding lacks, so that "·" is not "?".

    It is an error handler of Python's encoders: a stream with all characters never calls it. Mostly
    one character replaces one, so that columns stay aligned.
    """
    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error(_HANDLER, _replace)
        stream.reconfigure(errors=_HANDLER)


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object
    replaced = [_find(text, place) for place in range(error.start, error.end)]
    return "".join(replaced), error.end


def _find(text: str, place: int) -> str:
    character = text[place]
    if character == "…":
        # At the end of a shortened cell it has one column; in a sentence it may have three.
        after = text[place + 1 : place + 2]  # an escape ends a cell's color
        is_cut_off = place > 0 and text[place - 1] != " " and after in (" ", "\x1b")
        return "~" if is_cut_off else "..."
    if stand_in := _STAND_INS.get(character):
        return stand_in
    number = ord(character)
    if number in _BOX_DRAWING:
        return "+"
    if number in _BLOCKS:
        return "#"
    if number in _BRAILLE:
        return ":"
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return plain or "?"  # a name in Hangul has no other
