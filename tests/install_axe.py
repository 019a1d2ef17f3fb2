"""Puts axe-core, which judges how accessible a page is, beside this Python: make setup runs it.

It is only on npm. Where there is no npm the tests that need it are skipped, and say so.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

AXE = "axe-core@4.14.0"
TARGET = Path(sys.prefix) / "axe.min.js"
_SECONDS = 120.0


def main() -> None:
    npm = shutil.which("npm")
    if npm is None:
        print("mpsbar: no npm: the report is tested without axe-core")
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", "--silent", AXE, "--pack-destination", folder]
        try:
            subprocess.run(command, cwd=folder, check=True, timeout=_SECONDS, capture_output=True)
        except (subprocess.SubprocessError, OSError) as error:
            print(f"mpsbar: axe-core could not be had from npm ({type(error).__name__})")
            return
        (package,) = Path(folder).glob("*.tgz")
        with tarfile.open(package) as archive:
            member = archive.extractfile("package/axe.min.js")
            assert member is not None
            TARGET.write_bytes(member.read())


if __name__ == "__main__":
    main()
