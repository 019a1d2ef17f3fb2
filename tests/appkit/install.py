"""Puts the real rumps and PyObjC's real AppHelper into this Python on Linux: make setup runs it.

Neither can be had there in the usual way: rumps wants PyObjC, and PyObjC has no wheel for Linux.
AppHelper is one file of pure Python, so it is taken out of the wheel for macOS.
"""

import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

RUMPS = "rumps==0.4.0"
COCOA = "pyobjc-framework-Cocoa==13.0"
# Any wheel of that version holds the same file; these name one that exists, whatever Python runs here.
WHEEL = ["--only-binary=:all:", "--platform=macosx_11_0_universal2", "--python-version=3.11"]
HELPER = "PyObjCTools/AppHelper.py"


def main() -> None:
    if sys.platform == "darwin":
        return  # there both come as dependencies
    pip("install", "--no-build-isolation", RUMPS)
    with tempfile.TemporaryDirectory() as folder:
        pip("download", *WHEEL, "--dest", folder, COCOA)
        (wheel,) = Path(folder).glob("*.whl")
        take_helper(wheel, Path(sysconfig.get_path("purelib")))


def pip(verb: str, *arguments: str) -> None:
    quiet = ["--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([sys.executable, "-m", "pip", verb, *quiet, *arguments], check=True)


def take_helper(wheel: Path, packages: Path) -> None:
    """Without an __init__.py: PyObjCTools is a namespace package."""
    target = packages / HELPER
    target.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(wheel) as archive, archive.open(HELPER) as source:
        with target.open("wb") as out:
            shutil.copyfileobj(source, out)


if __name__ == "__main__":
    main()
