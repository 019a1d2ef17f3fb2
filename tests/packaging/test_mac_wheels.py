"""The wheels the app is made of, as a Mac gets them: every extension module runs on Apple Silicon."""

import subprocess
import sys
import zipfile

import pytest
from worker_kit import ROOT

macholib = pytest.importorskip("macholib.MachO")
ARM64 = 0x0100000C  # CPU_TYPE_ARM64
SECONDS = 400


def read_requirements():
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        line.partition(";")[0] for line in project["dependencies"] if "python_version" not in line
    ]
    return [line for line in wanted if not line.startswith("rumps")]  # an sdist of pure Python


@pytest.fixture(scope="module", params=["3.10", "3.13"])
def wheels(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
        "--only-binary=:all:", "--python-version", request.param, "--implementation", "cp",
        "--dest", folder,
    ]  # fmt: skip
    for system in (
        "13_0_arm64",
        "11_0_arm64",
        "11_0_universal2",
        "10_13_universal2",
        "10_9_universal2",
    ):
        command += ["--platform", f"macosx_{system}"]
    done = subprocess.run(
        [*command, *read_requirements()], capture_output=True, text=True, timeout=SECONDS
    )
    if done.returncode:
        pytest.skip(f"the registry was not reached: {done.stderr.strip()[-300:]}")
    return sorted(folder.glob("*.whl"))


def test_every_extension_has_an_arm64_slice(wheels, tmp_path):
    names = {wheel.name.split("-")[0].lower() for wheel in wheels}
    wanted = {"cocoa", "metal", "servicemanagement", "usernotifications"}
    assert {f"pyobjc_framework_{name}" for name in wanted} | {
        "pyobjc_core",
        "platformdirs",
        "psutil",
        "wcwidth",
    } <= names
    checked = 0
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as file:
            for name in file.namelist():
                if not name.endswith((".so", ".dylib")) or ".dSYM/" in name:
                    continue
                path = file.extract(name, tmp_path / wheel.stem)
                kinds = {header.header.cputype for header in macholib.MachO(path).headers}
                assert ARM64 in kinds, f"{wheel.name}: {name}"
                checked += 1
    assert checked > 5
