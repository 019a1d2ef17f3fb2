"""build_app.sh: its words and its order; the tools of macOS are doubles that write down what they do."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import interpreters
import pytest
from thorough import two_sizes
from worker_kit import ROOT

SCRIPT = ROOT / "build_app.sh"
SIGNED = "Developer ID Application: A Person (TEAM)"
LOG = '#!/bin/sh\necho "$(basename "$0") $*" >> "$LOG"\n'
# A framework Python: it makes a venv whose Python is itself, and py2app's result by hand.
PYTHON = """
case "$*" in
  "-m venv"*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  *"setup.py"*)
    contents=dist/mpsbar.app/Contents
    mkdir -p $contents/MacOS $contents/Frameworks/Python.framework/Versions/3.13 \
      $contents/Resources/lib/__pycache__ $contents/Resources/lib/a.dSYM
    touch $contents/Frameworks/libpython.dylib $contents/Resources/lib/one.so $contents/MacOS/python \
      $contents/Resources/lib/__pycache__/x.pyc $contents/Frameworks/Python.framework/Versions/3.13/Python
    printf '#!/bin/sh\\necho "${SAYS:-mpsbar $VERSION}"\\n' > $contents/MacOS/mpsbar
    chmod +x $contents/MacOS/mpsbar ;;
  "-") cat > /dev/null; printf '%s' "${REASON:-}" ;;
esac
"""


@pytest.fixture
def mac(tmp_path):
    """A checkout's packaging on a pretended Mac; returns a way to run the script there."""
    for name in ("packaging/app", "resources", "mpsbar/agent"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("setup.py", "build_app.sh", "packaging/minimum_macos.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    tools = tmp_path / "tools"
    tools.mkdir()
    bodies = dict.fromkeys(("codesign", "hdiutil", "xattr", "xcrun", "ditto"), "")
    bodies |= {
        "uname": "echo Darwin\n",
        "lipo": 'echo "${ARCHS:-x86_64 arm64}"\n',
        "python3.13": PYTHON,
    }
    for name, body in bodies.items():
        (tools / name).write_text(LOG + body)
        (tools / name).chmod(0o755)
    import mpsbar

    def run(*arguments, **env):
        known = {
            "PATH": f"{tools}:/usr/bin:/bin",
            "LOG": str(tmp_path / "log"),
            "VERSION": mpsbar.__version__,
        }
        return subprocess.run(
            ["bash", tmp_path / "build_app.sh", *arguments],
            env=known | env, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    run.folder, run.tools, run.log = tmp_path, tools, tmp_path / "log"
    return run


def read_calls(run, tool):
    lines = run.log.read_text().splitlines()
    return [
        line for line in lines if line.startswith(f"{tool} ") and "python" not in line.split()[0]
    ]


def test_every_script_passes_shellcheck():
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck: apt-get install shellcheck")
    scripts = [SCRIPT, ROOT / "packaging/app/bin/mpsbar", ROOT / ".ci/run"]
    done = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True)
    assert done.stdout == ""


def test_ad_hoc_from_the_inside_out_then_verified(mac):
    done = mac()
    assert done.returncode == 0, done.stderr
    calls = read_calls(mac, "codesign")
    # What it writes into the plist must be there before the plist is signed.
    log = mac.log.read_text().splitlines()
    (written,) = [
        number
        for number, line in enumerate(log)
        if "packaging/minimum_macos.py dist/mpsbar.app" in line
    ]
    assert written < min(number for number, line in enumerate(log) if line in calls)
    signed = [
        line.rpartition("mpsbar.app")[2] for line in calls if "--sign - --timestamp=none" in line
    ]
    assert set(signed[:2]) == {
        "/Contents/Frameworks/libpython.dylib",
        "/Contents/Resources/lib/one.so",
    }
    assert signed[2:] == [
        "/Contents/Frameworks/Python.framework/Versions/3.13",
        "/Contents/MacOS/python",
        "",
    ]
    assert [line for line in calls if "--verify --deep --strict" in line] == calls[-2:]
    app = mac.folder / "dist/mpsbar.app"
    assert not list(app.rglob("__pycache__")) + list(app.rglob("*.dSYM"))
    assert read_calls(mac, "xattr") == ["xattr -cr dist/mpsbar.app"]
    assert not read_calls(mac, "xcrun")
    (zipped, staged) = read_calls(mac, "ditto")
    assert (
        zipped == "ditto -c -k --sequesterRsrc --keepParent dist/mpsbar.app dist/mpsbar-0.1.0.zip"
    )
    assert staged == "ditto dist/mpsbar.app build/app/image/mpsbar.app"
    assert os.readlink(mac.folder / "build/app/image/Applications") == "/Applications"
    assert read_calls(mac, "hdiutil")[0].endswith("-format UDZO -ov dist/mpsbar-0.1.0.dmg")
    assert "Open Anyway" in done.stdout


def test_signed_by_a_developer_and_notarised(mac):
    done = mac("--sign", SIGNED, "--notarize", "profile")
    assert done.returncode == 0, done.stderr
    calls = read_calls(mac, "codesign")
    hardened = [
        c
        for c in calls
        if "--options runtime --timestamp --entitlements packaging/app/entitlements.plist" in c
    ]
    assert len(hardened) == 5
    assert f"codesign --force --sign {SIGNED} --timestamp dist/mpsbar-0.1.0.dmg" in calls
    assert read_calls(mac, "xcrun")[1:] == [
        "xcrun notarytool submit dist/mpsbar-0.1.0.zip --keychain-profile profile --wait",
        "xcrun stapler staple dist/mpsbar.app",
        "xcrun notarytool submit dist/mpsbar-0.1.0.dmg --keychain-profile profile --wait",
        "xcrun stapler staple dist/mpsbar-0.1.0.dmg",
    ]
    assert len([call for call in read_calls(mac, "ditto") if "-k" in call]) == 2  # with the ticket


@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        (["--notarize", "p"], {}, "--notarize needs --sign IDENTITY"),
        (["--sign", "x", "--notarize", "p", "--app-only"], {}, "which --app-only skips"),
        (["--sign"], {}, "--sign needs a value"),
        (["--sign", "--check"], {}, "--sign needs a value"),
        (["--fast"], {}, "unknown argument: --fast"),
        (["--python", "nowhere"], {}, "couldn't find nowhere"),
        (["--python", "python3.13"], {"REASON": "is older"}, "/python3.13 is older"),
        ([], {"REASON": "is older than 3.10"}, "couldn't find a Python that can build an app"),
        ([], {"ARCHS": "x86_64"}, "isn't built for Apple Silicon"),
        ([], {"SAYS": "mpsbar 0"}, "doesn't start"),
    ],
)
def test_what_is_wrong_is_one_clear_sentence(mac, arguments, env, words):
    done = mac(*arguments, **env)
    assert done.returncode == 1
    assert words in done.stderr
    assert done.stderr.startswith("mpsbar: ")
    assert done.stderr.count("\n") == 1
    assert not list(mac.folder.glob("dist/*.dmg"))


@pytest.mark.parametrize("tool", ["codesign", "lipo"])
def test_a_missing_tool_is_named(mac, tool):
    (mac.tools / tool).unlink()
    done = mac()
    assert done.returncode == 1
    assert done.stderr.startswith(f"mpsbar: {tool} was not found: it comes with macOS")


def test_a_broken_signature_stops_it(mac):
    (mac.tools / "codesign").write_text(LOG + 'case "$*" in --verify*) exit 1 ;; esac\n')
    done = mac()
    assert (done.returncode, done.stderr) == (1, "mpsbar: the signature isn't valid\n")


def test_check_and_clean(mac):
    done = mac("--check")
    assert done.returncode == 0
    assert done.stdout.endswith("python3.13\n")
    assert not (mac.folder / "dist").exists()
    assert mac().returncode == 0
    assert mac("--clean").returncode == 0
    assert not list(mac.folder.glob("dist/*")) + list(mac.folder.glob("build/*"))


def test_only_the_app(mac):
    assert mac("--app-only").returncode == 0
    assert not read_calls(mac, "ditto") + read_calls(mac, "hdiutil")


def test_elsewhere_it_says_what_it_leaves_out(mac):
    (mac.tools / "uname").write_text("#!/bin/sh\necho Linux\n")
    checked, built = mac("--check"), mac()
    assert checked.returncode == 0
    assert "skipped because this is not macOS" in checked.stdout
    assert built.returncode == 1
    assert "--check does what can be done here" in built.stderr


def test_help_names_every_option():
    done = subprocess.run([SCRIPT, "--help"], capture_output=True, text=True)
    options = ("--sign", "--notarize", "--python", "--app-only", "--check", "--clean")
    assert done.returncode == 0
    assert all(option in done.stdout for option in options)


def test_the_real_question_to_a_python_refuses_a_standalone_one(mac):
    """As this one is, on Linux."""
    if sys.platform == "darwin":
        pytest.skip("it may be one that can build")
    done = mac("--python", sys.executable)
    assert done.returncode == 1
    assert "is not a framework build: use python.org's or Homebrew's" in done.stderr


class TestCommand:
    """bin/mpsbar, by way of links, with what the user has in the environment kept."""

    @pytest.fixture
    def tool(self, tmp_path):
        contents = tmp_path / "My Apps/mpsbar.app/Contents"
        (contents / "MacOS").mkdir(parents=True)
        shutil.copytree(ROOT / "packaging/app/bin", contents / "Resources/bin")
        program = contents / "MacOS/mpsbar"
        program.write_text(
            '#!/bin/sh\necho "$0"; printf "<%s>" "$@"; echo; env | grep MPSBAR_SAVED | sort\n'
        )
        program.chmod(0o755)
        return contents / "Resources/bin/mpsbar"

    def test_through_two_links(self, tool, tmp_path):
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/first").symlink_to(tool)
        (tmp_path / "bin/mpsbar").symlink_to("first")
        env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/a b:$(id)`id`", "PYTHONHOME": ""}
        command = [tmp_path / "bin/mpsbar", "run", "a b", "*", ""]
        done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=tmp_path)
        assert done.stderr == ""
        assert done.stdout.splitlines() == [
            str(tool.parents[2].resolve() / "MacOS/mpsbar"),
            "<run><a b><*><>",
            "MPSBAR_SAVED_PYTHONHOME=",
            "MPSBAR_SAVED_PYTHONPATH=/a b:$(id)`id`",
        ]

    def test_without_its_app(self, tool):
        shutil.rmtree(tool.parents[2] / "MacOS")
        done = subprocess.run([tool], capture_output=True, text=True)
        assert done.returncode == 1
        assert "install it again" in done.stderr

    def test_both_ends_know_the_same_variables(self):
        import re

        shell = (ROOT / "packaging/app/bin/mpsbar").read_text()
        saved = re.search(r"for name in (.*?); do", shell, re.DOTALL)[1].replace("\\", "").split()
        start = (ROOT / "packaging/app/start_app.py").read_text()
        changed = re.search(r"CHANGED = \((.*?)\)", start, re.DOTALL)[1]
        assert saved == re.findall(r'"(\w+)"', changed)
        assert Path(ROOT / "packaging/app/bin/mpsbar").stat().st_mode & 0o111


@two_sizes("version", small=["3.10", "3.13"], whole=["3.11", "3.12"])
def test_what_it_installs_is_enough_for_each_python(tmp_path, version):
    """With the script's own requirements: a new venv of 3.10 or 3.11 has an older setuptools."""
    python = interpreters.need(version)
    line = re.search(r"pip install .*", SCRIPT.read_text())[0]
    wanted = [word for word in re.findall(r'"([^"]+)"', line) if not word.startswith(".")]
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True)
    venv = tmp_path / "venv/bin/python"
    pip = [venv, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    installed = subprocess.run([*pip, *wanted], capture_output=True, text=True, timeout=600)
    if "No matching distribution" in installed.stderr or "Temporary failure" in installed.stderr:
        pytest.skip("no package index here")
    assert installed.returncode == 0, installed.stderr
    build = [ROOT / "tests/packaging/py2app_on_linux.py", "--alias"]
    folders = ["--dist-dir", tmp_path / "dist", "--bdist-base", tmp_path / "build"]
    done = subprocess.run(
        [venv, *build, *folders], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "dist/mpsbar.app/Contents/Info.plist").exists()
