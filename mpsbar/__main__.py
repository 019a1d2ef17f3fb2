"""python -m mpsbar, and the `mpsbar` command."""

import _signal  # type: ignore[import-not-found]  # built in: its import cannot be interrupted
import sys


def main() -> None:
    # Ctrl-C while modules are imported, or while Python ends, stops the process without a
    # traceback: by the signal itself. Not where the caller has it ignored, as for a job of `&`.
    is_usual = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
    if is_usual:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from mpsbar.cli.main import run

    code = 130
    try:
        if is_usual:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        code = run(sys.argv[1:])
        if is_usual:
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    except KeyboardInterrupt:
        pass  # in the moments before and after run() looks after it itself
    sys.exit(code)


if __name__ == "__main__":
    main()
