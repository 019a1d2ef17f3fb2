"""What is uploaded and installed: wheel and sdist, checked, and run in an empty environment."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

import platformdirs
import pytest
from worker_kit import ROOT

import mpsbar
from mpsbar.desktop.command_line_link import SHELL_FILES

SECONDS = 400  # pip on a busy machine
NO_REGISTRY = (
    "No matching distribution",
    "Could not fetch",
    "connection",
    "Connection",
    "timed out",
)


def run(*command, **options):
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=SECONDS, **options
    )


def copy_checkout(target):
    """Not what happens to lie here: egg-info would add to it."""
    listed = run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).stdout.split("\n")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)


def build(folder):
    """With the setuptools that is here: the build itself is meant, not the fetching of its tools."""
    copy_checkout(folder / "source")
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", folder)
    done = run(*command, folder / "source")
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(build_once):
    pytest.importorskip("build")
    folder, log = build_once("wheel", build)
    warned = re.findall(r"^.*(?:[Ww]arning: |Deprecat).*$", log, re.MULTILINE)
    # No fault: what is to be left out is not there; $PYTHONDONTWRITEBYTECODE is set.
    known = ("previously-included", "byte-compiling is disabled")
    assert [line for line in warned if not any(word in line for word in known)] == []
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def list_files(folder):
    listed = run("git", "ls-files", "-co", "--exclude-standard", folder, cwd=ROOT).stdout
    return {name for name in listed.split() if (ROOT / name).is_file()}


def test_the_wheel_has_all_of_mpsbar_and_nothing_else(built):
    with zipfile.ZipFile(built[0]) as file:
        names = {name for name in file.namelist() if ".dist-info/" not in name}
        metadata = file.read(f"mpsbar-{mpsbar.__version__}.dist-info/METADATA").decode()
        scripts = file.read(f"mpsbar-{mpsbar.__version__}.dist-info/entry_points.txt").decode()
    data = f"mpsbar-{mpsbar.__version__}.data/data/"
    shell = {name.removeprefix(data) for name in names if name.startswith(data)}
    assert shell == set(SHELL_FILES)
    names -= {data + name for name in shell}
    assert names == list_files("mpsbar") | {f"mpsbar/{name}" for name in list_files("resources")}
    assert "mpsbar = mpsbar.__main__:main" in scripts
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist")]
    assert not [line for line in required if "torch" in line and "extra" not in line]
    assert any("rumps==0.4.0" in line and "darwin" in line for line in required)


def test_the_sdist_builds_the_app_too(built):
    with tarfile.open(built[1]) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    wanted = {
        "setup.py", "pyproject.toml", "LICENSE", "README.md", "UNINSTALL.md", "build_app.sh",
        "packaging/app/start_app.py", "packaging/app/bin/mpsbar", "packaging/app/entitlements.plist",
    }  # fmt: skip
    assert wanted <= names
    assert list_files("mpsbar") | list_files("resources") <= names


def read_resources(folder):
    """Where a Python finds them that has `folder` and no other mpsbar; the app: test_app_bundle.py."""
    code = (
        f"import site, sys; site.addsitedir({str(folder)!r})\n"
        f"sys.path.append({str(Path(platformdirs.__file__).parents[1])!r})\n"  # without its .pth files
        "from mpsbar.system.paths import resource\n"
        "for name in ('icon@2x.png', 'report.css', 'mpsbar.icns'): print(resource(name).parent)\n"
        "import os; os.environ['MPSBAR_LANG'] = 'ko'\n"
        "from mpsbar import language; assert language.get_translations().info()['language'] == 'ko'\n"
        "from mpsbar.agent.language import find_locale_folder\n"
        "print(os.path.dirname(find_locale_folder()))"
    )
    done = run(sys.executable, "-I", "-S", "-c", code, cwd="/")
    assert done.returncode == 0, done.stderr
    return {Path(line) for line in done.stdout.splitlines()}


def install_into(folder, *what):
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--target", folder)
    done = run(sys.executable, "-m", "pip", "install", *options, *what)
    assert done.returncode == 0, done.stderr


def test_the_wheel_brings_the_resources(built, tmp_path):
    with zipfile.ZipFile(built[0]) as archive:
        archive.extractall(tmp_path / "site")
    assert read_resources(tmp_path / "site") == {tmp_path / "site/mpsbar/resources"}


def test_the_sdist_brings_the_resources_to_its_wheel(built, tmp_path):
    with tarfile.open(built[1]) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    install_into(tmp_path / "site", source)
    assert read_resources(tmp_path / "site") == {tmp_path / "site/mpsbar/resources"}


def test_an_editable_install_uses_the_checkouts_resources(tmp_path):
    source = tmp_path / "source"
    copy_checkout(source)
    install_into(tmp_path / "site", "-e", source)
    assert read_resources(tmp_path / "site") == {source / "resources"}


def test_twine_finds_nothing_wrong(built):
    pytest.importorskip("twine")
    done = run(sys.executable, "-m", "twine", "check", "--strict", *built)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("PASSED") == 2


class Installed:
    """mpsbar from its wheel, in an environment without torch, with a home of its own."""

    def __init__(self, folder):
        self.folder, self.home, self.bin = folder, folder / "home", folder / "tool/bin"
        for name in (".local/share", ".local/state", ".local/bin", ".config", "work"):
            (self.home / name).mkdir(parents=True)
        venv.create(self.home / "work/venv", with_pip=False)
        self.before = list_tree(self.home)

    def run(self, *command, **extra):
        env = {"HOME": str(self.home), "LANG": "C.UTF-8", "PATH": f"{self.bin}:/usr/bin:/bin"}
        # As it would be by itself, but for $HOME, which does not count there.
        env["MPSBAR_RUN_DIR"] = str(self.home / ".local/state/mpsbar/run-here")
        return run(*command, env=env | extra, cwd=self.home)

    def says(self, *arguments, **extra):
        done = self.run("mpsbar", *arguments, **extra)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def tool(built):
    """A folder with the environment that pip made: `as-made`, to be copied to `tool`, the path it names."""
    # Not pytest's tmp_path: its agent's socket is in there, whose path may have 103 bytes only.
    with tempfile.TemporaryDirectory(prefix="mpsbar-") as name:
        folder = Path(name)
        venv.create(folder / "tool", with_pip=True)
        quiet = ("--quiet", "--disable-pip-version-check")
        done = run(folder / "tool/bin/python", "-m", "pip", "install", *quiet, built[0])
        if done.returncode and any(word in done.stderr for word in NO_REGISTRY):
            pytest.skip(f"no registry: {done.stderr[-200:]}")
        assert done.returncode == 0, done.stderr
        (folder / "tool").rename(folder / "as-made")
        yield folder


@pytest.fixture
def installed(tool):
    shutil.copytree(tool / "as-made", tool / "tool", symlinks=True)
    yield Installed(tool)
    shutil.rmtree(tool / "tool")
    shutil.rmtree(tool / "home")


def list_tree(folder):
    """Every file, folder and link, with what is in it."""
    return {
        str(path.relative_to(folder)): path.readlink() if path.is_symlink()
        else path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }  # fmt: skip


def test_installed_into_an_empty_environment_it_runs(installed):
    assert installed.says("--version") == f"mpsbar {mpsbar.__version__}\n"
    assert "finetune.py" in installed.says("status", MPSBAR_REPLAY="m1-8gb")
    assert all((installed.folder / "tool" / name).is_file() for name in SHELL_FILES)
    assert "Free Cache" in installed.says("demo", "--recorded")
    assert str(installed.folder / "tool/lib") in installed.says("doctor", "--self-test")
    assert installed.run(installed.bin / "python", "-c", "import torch").returncode


def test_as_a_tool_of_uv(built, tmp_path):
    """With this Python: uv's own, which draws the icon, would have to be fetched."""
    uv = shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        pytest.skip("no uv: make setup")
    env = dict(os.environ) | {"HOME": str(tmp_path), "UV_CACHE_DIR": str(tmp_path / "cache")}
    env |= {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    done = run(uv, "tool", "install", "--python", sys.executable, built[0], env=env)
    if done.returncode and any(word in done.stderr for word in NO_REGISTRY):
        pytest.skip(f"no registry: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    says = run(tmp_path / "bin/mpsbar", "--version", env=env)
    assert says.stdout == f"mpsbar {mpsbar.__version__}\n"
    assert run(uv, "tool", "uninstall", "mpsbar", env=env).returncode == 0
    assert not (tmp_path / "bin/mpsbar").exists()


USE = """
import time
from mpsbar.core.machine import IconCheck
from mpsbar.desktop import icon_visibility as icon; from mpsbar.system import single_instance as instance, log, settings_file as settings
claim = instance.claim()
log.start_log().warning("used")
icon.write_icon(IconCheck(time.time(), None, ""))
settings.write_setting("bar", "gpu")
claim.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the files are where Linux has them")
def test_uninstalled_as_described_nothing_is_left(installed):
    """With all that mpsbar makes having been made, the app's files by the app's own functions."""
    assert "on" in installed.says("login", "on").lower()
    installed.says("enable", "--python", str(installed.home / "work/venv/bin/python"))
    installed.says("enable", "--jupyter")
    installed.says(
        "run", "work/venv/bin/python", "-c", "import mpsbar_agent.lifecycle as l; l.attach()"
    )
    assert installed.run(installed.bin / "python", "-c", USE).returncode == 0
    app = installed.home / "Applications/mpsbar.app/Contents/Resources/bin/mpsbar"
    app.parent.mkdir(parents=True)
    app.write_text("")
    (installed.home / ".local/bin/mpsbar").symlink_to(app)
    made = set(list_tree(installed.home)) - set(installed.before)
    for name in (".config/autostart/", ".config/mpsbar/settings.toml", ".ipython/", "mpsbar-agent.pth",
                 ".local/share/mpsbar/icon.json", "mpsbar.log", ".local/state/mpsbar/run-here"):  # fmt: skip
        assert any(name in path for path in made), (name, sorted(made))
    asked, _, linux, itself = read_blocks(installed.home)
    for block in (asked, linux, itself):
        done = installed.run("sh", "-eu", "-c", block)
        assert done.returncode == 0, done.stdout + done.stderr
    left = list_tree(installed.home)
    left.pop("Applications", None)  # a folder of the user's
    assert left == installed.before


@pytest.mark.skipif(sys.platform != "linux", reason="it would be this Mac's own home")
def test_what_is_made_on_a_mac_is_named_too(tmp_path, monkeypatch):
    from platformdirs.macos import MacOS

    from mpsbar.agent import user_folders
    from mpsbar.desktop import login_macos

    monkeypatch.setenv("HOME", str(tmp_path))
    dirs = MacOS("mpsbar", appauthor=False)
    folders = {dirs.user_data_path, dirs.user_config_path, dirs.user_log_path}
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "darwin")
        patch.setattr(user_folders, "_home", lambda: str(tmp_path))
        patch.delenv("MPSBAR_RUN_DIR", raising=False)
        folders.add(Path(user_folders.find_run_folders()[0]))
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "file").write_text("")
    agent = tmp_path / f"Library/LaunchAgents/{login_macos.LABEL}.plist"
    agent.parent.mkdir()
    agent.write_text("")
    (tmp_path / "defaults").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "defaults").chmod(0o755)
    env = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = run("sh", "-eu", "-c", read_blocks(tmp_path)[1], env=env)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["defaults"]
    assert not [path for path in tmp_path.rglob("*") if "mpsbar" in path.name]


def read_blocks(home):
    """The commands of UNINSTALL.md; what is outside of a home is moved into this one."""
    text = (ROOT / "UNINSTALL.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    outside = r"(?<![\w~])(?:/private/tmp|/tmp|/Applications|/usr/local/bin)\b"
    assert len(blocks) == 4
    return [re.sub(outside, f"{home}/elsewhere", block) for block in blocks]
