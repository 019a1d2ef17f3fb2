"""Writes into an app's Info.plist the oldest macOS that all of its binaries run on.

python packaging/minimum_macos.py dist/mpsbar.app, after py2app and before signing. The Python and
the wheels decide it, so it is read from them and never promised.
"""

import plistlib
import sys
from collections.abc import Iterator
from pathlib import Path

from macholib.mach_o import LC_BUILD_VERSION, LC_VERSION_MIN_MACOSX
from macholib.MachO import MachO

OLDEST = (13, 0)  # what mpsbar itself needs: SMAppService
_MAGIC = (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")  # of one chip, of several


def read_minimums(app: Path) -> Iterator[tuple[tuple[int, int], Path]]:
    """The oldest macOS of each binary, of each chip it is built for."""
    for path in sorted(app.rglob("*")):
        if path.is_symlink() or not path.is_file() or not _is_macho(path):
            continue
        for header in MachO(str(path)).headers:
            for load, command, _data in header.commands:
                if load.cmd == LC_BUILD_VERSION:
                    yield _unpack(int(command.minos)), path
                elif load.cmd == LC_VERSION_MIN_MACOSX:
                    yield _unpack(int(command.version)), path


def _is_macho(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in _MAGIC


def _unpack(version: int) -> tuple[int, int]:
    return version >> 16, version >> 8 & 0xFF


def main(app: Path) -> str:
    found = list(read_minimums(app))
    if not found:
        raise SystemExit(f"no binary in {app} says which macOS it needs")
    newest, path = max(found)
    minimum = max(newest, OLDEST)
    plist = app / "Contents/Info.plist"
    info = plistlib.loads(plist.read_bytes())
    info["LSMinimumSystemVersion"] = f"{minimum[0]}.{minimum[1]}"
    plist.write_bytes(plistlib.dumps(info))
    why = f" (because of {path.relative_to(app)})" if newest > OLDEST else ""
    return f"runs on macOS {minimum[0]}.{minimum[1]} or newer{why}"


if __name__ == "__main__":
    print(main(Path(sys.argv[1])))
