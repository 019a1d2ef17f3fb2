"""The app as py2app builds it, here without Mach-O and signature: what is in it, and that it starts."""

import json
import os
import plistlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from worker_kit import ROOT

import mpsbar
from mpsbar.desktop.command_line_link import SHELL_FILES

HERE = Path(__file__).parent
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
CONTENTS = "dist/mpsbar.app/Contents"
SECONDS = 400  # eight on an idle machine
pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="build_app.sh does it there")
# The parts of PyObjC that are not here. On a Mac the app gets what py2app saw imported and no more.
PYOBJC = {"AppKit", "Foundation", "Metal", "ServiceManagement", "UserNotifications", "objc"}
# What py2app does not find and the app does without: what older Pythons, other systems and torch's
# people have.
MISSING = PYOBJC | {
    "_abcoll", "_io._WindowsConsoleIO", "_overlapped", "dummy_thread", "jnius", "mlx.core", "thread",
    "torch",  # of mpsbar.compare(), which runs where torch is
    "mpsbar_agent",  # what mpsbar.agent is called in an enabled environment
}  # fmt: skip


def build(folder, *options):
    command = [
        sys.executable, HERE / "py2app_on_linux.py", *options,
        "--dist-dir", folder / "dist", "--bdist-base", folder / "build",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Done!" in done.stdout
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(build_once):
    pytest.importorskip("py2app")
    return build_once("app", build)


@pytest.fixture(scope="module")
def contents(built):
    return built[0] / CONTENTS


def list_files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def check_plist(contents):
    info = plistlib.loads((contents / "Info.plist").read_bytes())
    wanted = {
        "CFBundleDevelopmentRegion": "en",
        "CFBundleLocalizations": ["en", "ko"],
        "CFBundleIdentifier": "io.github.mpsbar",
        "CFBundleName": "mpsbar",
        "CFBundleExecutable": "mpsbar",
        "CFBundleShortVersionString": mpsbar.__version__,
        "CFBundleVersion": mpsbar.__version__,
        "CFBundleIconFile": "mpsbar.icns",
        "LSMinimumSystemVersion": "13.0",
        "LSUIElement": True,
        "NSAppSleepDisabled": True,
        "NSHumanReadableCopyright": "MIT License",
    }
    assert {key: info.get(key) for key in wanted} == wanted
    for folder in ("Desktop", "Documents", "Downloads"):
        assert "Python environments" in info[f"NS{folder}FolderUsageDescription"]
    assert info["NSAppleEventsUsageDescription"].endswith("notifications.")
    assert info["PyOptions"]["argv_emulation"] is False
    assert info["PyOptions"]["no_chdir"] is True  # relative paths on its command line


def test_the_plist(contents):
    check_plist(contents)


def test_what_macos_asks_is_asked_in_each_language(contents):
    """The same keys as in Info.plist, whose texts are English."""
    info = plistlib.loads((contents / "Info.plist").read_bytes())
    wanted = {key for key in info if key.endswith("UsageDescription")}
    for language in info["CFBundleLocalizations"][1:]:
        text = (contents / f"Resources/{language}.lproj/InfoPlist.strings").read_text(
            encoding="utf-8"
        )
        pairs = re.findall(r'^"(\w+)" = "([^"]+)";$', text, re.MULTILINE)
        assert {key for key, _ in pairs} == wanted
        assert len(pairs) == len(wanted)


def test_it_has_a_mach_o_program_and_the_command(contents):
    magic = (contents / "MacOS/mpsbar").read_bytes()[:4]
    assert magic in (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
    tool = contents / "Resources/bin/mpsbar"
    assert os.access(tool, os.X_OK)
    assert tool.read_bytes() == (ROOT / "packaging/app/bin/mpsbar").read_bytes()
    for name in SHELL_FILES:
        source = ROOT / "packaging/shell" / Path(name).name
        assert (contents / "Resources" / name).read_bytes() == source.read_bytes()


def test_mpsbar_is_in_it_once_and_as_files(contents):
    package = contents / f"Resources/lib/python{VERSION}/mpsbar"
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "mpsbar", "resources"],
        cwd=ROOT, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    wanted = {name.removeprefix("mpsbar/") for name in tracked if (ROOT / name).exists()}
    assert wanted, "no checkout"
    assert {name for name in list_files(package) if not name.endswith(".pyc")} == wanted
    with zipfile.ZipFile(contents / f"Resources/lib/python{VERSION.replace('.', '')}.zip") as file:
        assert not [name for name in file.namelist() if name.startswith("mpsbar/")]


def test_the_app_brings_the_resources(contents):
    """The wheel, the sdist and an editable install: test_wheel.py."""
    resources = contents / f"Resources/lib/python{VERSION}/mpsbar/resources"
    kinds = (
        "icon.png", "icon@2x.png", "mpsbar.icns", "report.css", "report.js", "grafana/*.json",
        "prometheus/*", "locale/ko/LC_MESSAGES/mpsbar.mo", "schema/status.json", "mps-operations.json",
    )  # fmt: skip
    for kind in kinds:
        sources = list((ROOT / "resources").glob(kind))
        assert sources, f"{kind}: not in resources/ any more"
        for source in sources:
            there = resources / source.relative_to(ROOT / "resources")
            assert there.read_bytes() == source.read_bytes()


def test_nothing_is_in_it_that_does_not_belong(contents):
    with zipfile.ZipFile(contents / f"Resources/lib/python{VERSION.replace('.', '')}.zip") as file:
        tops = {name.split("/")[0].split(".")[0] for name in file.namelist()}
    lib = {path.name for path in (contents / f"Resources/lib/python{VERSION}").iterdir()}
    unwanted = {
        "torch", "numpy", "mlx", "tkinter", "pytest", "_pytest", "pip", "setuptools", "pkg_resources",
        "test", "tests", "appkit", "softmps", "IPython", "hypothesis", "py2app",
    }  # fmt: skip
    assert not unwanted & (tops | lib)
    assert {"rumps", "platformdirs", "psutil", "wcwidth", "PyObjCTools"} <= tops
    size = sum(len(data) for data in list_files(contents).values())
    assert size < 60_000_000


def test_what_it_lacks_is_known(built):
    """What libraries import only if it is there is their own concern."""
    missing = re.findall(r"^ \* ([\w.]+) ?(.*)$", built[1], flags=re.MULTILINE)
    assert missing, "py2app no longer says what is missing"
    ours = {name for name, by in missing if not by or re.search(r"\b(?:mpsbar|rumps)\b", by)}
    assert {name.partition(".")[0] for name, _ in missing} >= PYOBJC
    assert {name for name in ours if not any(_is_of(name, known) for known in MISSING)} == set()


def _is_of(name, known):
    return name == known or name.startswith(f"{known}.")


def run_frozen(contents, script):
    """With nothing on its path but the bundle and the double of AppKit, in launchd's environment."""
    kept = {
        key: os.environ[key] for key in os.environ if key == "HOME" or key.startswith("MPSBAR_")
    }
    env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "USER": "ada", "TMPDIR": "/tmp", **kept}
    command = [sys.executable, "-I", "-S", HERE / script, contents.parent, ROOT / "tests"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_starts_to_its_menu_and_quits(contents, private):
    before = list_files(contents)
    seen = run_frozen(contents, "frozen_child.py")
    assert seen["menu"][-1] == "Quit mpsbar  ⌘Q"
    assert "Install Command Line Tool…" in seen["settings"]
    assert seen["from_elsewhere"] == []
    assert not seen["writes_bytecode"]
    assert seen["agent"].startswith(str(contents))
    resources = contents / f"Resources/lib/python{VERSION}/mpsbar/resources"
    assert seen["icon"] == str(resources / "icon.png")
    assert seen["environ"] == {"PYTHONPATH": "/of/the/user"}
    assert list_files(contents) == before  # or its signature would be void


def test_every_module_finds_what_it_imports(contents, private, monkeypatch):
    """Those too that only a command of the command line imports."""
    monkeypatch.setenv("MPSBAR_REPLAY", "m1-8gb")
    seen = run_frozen(contents, "frozen_imports.py")
    assert (seen["failed"], seen["elsewhere"]) == ({}, [])
    assert seen["budget"] == 55662788608  # through the bridge to Metal
    assert len(seen["imported"]) > 120
    assert "mpsbar.doctor.self_test.mac_checks" in seen["imported"]
    assert "finetune.py" in seen["status"]
    assert seen["psutil"].startswith(str(contents))  # its compiled part


def test_the_alias_build_is_for_work_on_it(tmp_path):
    pytest.importorskip("py2app")
    build(tmp_path, "--alias")
    contents = tmp_path / CONTENTS
    check_plist(contents)
    assert plistlib.loads((contents / "Info.plist").read_bytes())["PyOptions"]["alias"] is True
    assert (
        str(ROOT / "packaging/app/start_app.py") in (contents / "Resources/__boot__.py").read_text()
    )
