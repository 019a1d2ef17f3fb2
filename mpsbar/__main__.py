"""python -m mpsbar, and the `mpsbar` command."""

import sys


def main() -> None:
    from mpsbar.cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
