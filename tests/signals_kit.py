"""Signals as an interactive shell gives them to a program, however these tests were started."""

import signal

# Python itself ignores these two, and subprocess gives them back to children.
IGNORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}


def restore_signals() -> None:
    """Undo what this run inherited: nohup and a shell's `&` start it with signals ignored.

    A child inherits an ignored or blocked signal even through exec, and would then not end at Ctrl-C.
    """
    for number in signal.valid_signals() - IGNORED_BY_PYTHON:
        if signal.getsignal(number) == signal.SIG_IGN:
            interrupt = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if interrupt else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
