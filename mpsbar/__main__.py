"""python -m mpsbar, and the `mpsbar` command."""

import sys


def main() -> None:
    from mpsbar.commands.parser import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
