"""python -m softmps build|status: make the device, or say where it stands."""

import argparse
import sys

from softmps.build import BuildError, build, find_compiler, find_torch, library_path, why_no_build


def main() -> int:
    """Run one verb; the exit status is 1 when the device cannot be used here."""
    parser = argparse.ArgumentParser(prog="python -m softmps", description=__doc__)
    parser.add_argument("verb", choices=("build", "status"))
    parser.add_argument(
        "--if-possible",
        action="store_true",
        help="no error where there is no compiler or no torch, only the reason",
    )
    given = parser.parse_args()
    if reason := why_no_build():
        print(reason, file=sys.stderr)
        return 0 if given.if_possible else 1
    return run_build() if given.verb == "build" else run_status()


def run_build() -> int:
    """Compile unless it is done already, which needs no words."""
    try:
        build(print)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def run_status() -> int:
    """Print what a build would use, and whether there is one."""
    torch = find_torch()
    library = library_path(torch)
    print(f"torch     {torch.version}")
    print(f"compiler  {find_compiler() or 'none'}")
    print(f"library   {library}{'' if library.exists() else ' (not built)'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
