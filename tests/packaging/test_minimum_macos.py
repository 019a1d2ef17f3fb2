"""The oldest macOS of an app is that of its newest binary; Mach-O files made here, byte by byte."""

import plistlib
import runpy
import struct

import pytest
from worker_kit import ROOT

pytest.importorskip("macholib")
main = runpy.run_path(str(ROOT / "packaging/minimum_macos.py"))["main"]
BUILD_VERSION, VERSION_MIN = 0x32, 0x24


def build_macho(version, command=BUILD_VERSION):
    major, minor = version
    packed = major << 16 | minor << 8
    fields = (1, packed, packed, 0) if command == BUILD_VERSION else (packed, packed)
    load = struct.pack(f"<{2 + len(fields)}I", command, 8 + 4 * len(fields), *fields)
    arm64, dylib = 0x0100000C, 6
    return struct.pack("<8I", 0xFEEDFACF, arm64, 0, dylib, 1, len(load), 0, 0) + load


@pytest.fixture
def app(tmp_path):
    app = tmp_path / "mpsbar.app"
    (app / "Contents/MacOS").mkdir(parents=True)
    info = {"CFBundleName": "mpsbar", "LSMinimumSystemVersion": "13.0"}
    (app / "Contents/Info.plist").write_bytes(plistlib.dumps(info))
    (app / "Contents/readme.txt").write_text("no binary")
    (app / "Contents/MacOS/mpsbar").write_bytes(build_macho((11, 0)))
    return app


def read_info(app):
    return plistlib.loads((app / "Contents/Info.plist").read_bytes())


def test_no_older_than_mpsbar_itself(app):
    assert main(app) == "runs on macOS 13.0 or newer"
    assert read_info(app) == {"CFBundleName": "mpsbar", "LSMinimumSystemVersion": "13.0"}


@pytest.mark.parametrize("command", [BUILD_VERSION, VERSION_MIN])
def test_the_newest_binary_decides(app, command):
    (app / "Contents/MacOS/one.so").write_bytes(build_macho((15, 4), command))
    (app / "Contents/MacOS/two.so").write_bytes(build_macho((14, 0)))
    assert main(app) == "runs on macOS 15.4 or newer (because of Contents/MacOS/one.so)"
    assert read_info(app)["LSMinimumSystemVersion"] == "15.4"


def test_an_app_without_binaries_is_reported(app):
    (app / "Contents/MacOS/mpsbar").unlink()
    with pytest.raises(SystemExit, match="no binary"):
        main(app)
