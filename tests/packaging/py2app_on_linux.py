"""setup.py py2app where there is no macOS: all of it but what reads Mach-O files and signs them."""

import runpy
import sys

import py2app.build_app as build

_loader_paths = build.loader_paths


def loader_paths(source, target):
    """The extension modules here are ELF files."""
    try:
        return list(_loader_paths(source, target))
    except ValueError:
        return []


def leave_unsigned(bundle):
    print(f"not signed: {bundle}")


if __name__ == "__main__":
    build.loader_paths, build.codesign_adhoc = loader_paths, leave_unsigned
    sys.path.insert(0, "")
    sys.argv = ["setup.py", "py2app", "--debug-skip-macholib", *sys.argv[1:]]
    runpy.run_path("setup.py", run_name="__main__")
