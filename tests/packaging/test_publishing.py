"""The workflows against their schema, the formula's syntax, and that all of them speak of this version."""

import re
import shutil
import subprocess
import sys

import pytest
from worker_kit import ROOT

import mpsbar

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMULA = ROOT / "packaging/homebrew/mpsbar.rb"


def check_schema(*files):
    pytest.importorskip("check_jsonschema")
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.github-workflows",
        *files,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_workflows_fit_their_schema(tmp_path):
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "release.yml"]
    done = check_schema(*WORKFLOWS)
    assert done.returncode == 0, done.stdout
    broken = tmp_path / "broken.yml"
    broken.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "run-on:"))
    assert check_schema(broken).returncode == 1  # the check itself works


def test_their_scripts_pass_shellcheck(tmp_path):
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck: apt-get install shellcheck")
    scripts = []
    for path in WORKFLOWS:
        for block in re.findall(r"run: \|\n((?: {10}.*\n|\n)+)", path.read_text()):
            script = tmp_path / f"{len(scripts)}.sh"
            script.write_text("#!/bin/bash\n" + re.sub(r"\$\{\{.*?\}\}", "x", block))
            scripts.append(script)
    assert len(scripts) >= 5
    done = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True)
    assert done.stdout == ""


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_they_call_is_there(path):
    text = path.read_text()
    for name in set(re.findall(r"(?<![\w/])(packaging/[\w./]+|\.ci/run)", text)):
        assert (ROOT / name).exists(), name
    # Nobody's text is pasted into a shell: only what GitHub itself made, and secrets by environment.
    pasted = re.findall(r"run: (?:\|\n)?(?:.*\$\{\{.*)", text)
    assert pasted == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_pipe_does_not_hide_a_failure(path):
    """GitHub's shell on a Mac is bash -e without pipefail."""
    for block in re.findall(r"run: (?:\|\n((?: {10}.*\n|\n)+)|(.*))", path.read_text()):
        script = "".join(block)
        if re.search(r"\| tee\b", script):
            assert script.index("set -o pipefail") < script.index("| tee")


def test_three_macs_and_the_question_to_the_app():
    text = WORKFLOWS[0].read_text()
    assert "[macos-14, macos-15, macos-26]" in text
    assert "doctor --self-test" in text
    assert "upload-artifact" in text


def test_the_formula():
    if shutil.which("ruby") is None:
        pytest.skip("no ruby: apt-get install ruby")
    done = subprocess.run(["ruby", "-wc", FORMULA], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("Syntax OK\n", "")


def test_the_formula_calls_what_is_there():
    text = FORMULA.read_text()
    assert f"/v{mpsbar.__version__}.tar.gz" in text
    options = re.search(r'build_app.sh", (.*)', text)[1]
    known = (ROOT / "build_app.sh").read_text()
    assert all(f"      {option})" in known for option in re.findall(r"--[\w-]+", options))
    assert "mpsbar.app/Contents/Resources/bin/mpsbar" in text


def test_the_release_fills_in_the_formula(tmp_path):
    """With the very command of the workflow."""
    command = re.search(r"(sed -e .*) > files/mpsbar.rb", WORKFLOWS[1].read_text())[1]
    env = {"PATH": "/usr/bin:/bin", "url": "https://example.org/v9.tar.gz", "sum": "a" * 64}
    done = subprocess.run(
        ["bash", "-euc", command], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert 'url "https://example.org/v9.tar.gz"' in done.stdout
    assert f'sha256 "{"a" * 64}"' in done.stdout
    assert done.stdout.count("\n") == FORMULA.read_text().count("\n")


def test_the_notes_are_of_this_version():
    text = (ROOT / "packaging/RELEASE_NOTES.md").read_text()
    assert text.startswith(f"# mpsbar {mpsbar.__version__}\n")
    named = re.findall(r"`([\w/]+\.(?:md|sh))`", text)
    assert len(named) == 4
    assert all((ROOT / name).exists() for name in named)


def test_the_checklist_begins_with_the_icon_and_has_what_is_to_be_looked_at():
    text = (ROOT / "packaging/MAC_CHECKLIST.md").read_text()
    assert text.index("hexagon with three bars") < text.index("## What a program can check")
    minutes = [int(found) for found in re.findall(r"^## .*\((\d+) min\)", text, re.MULTILINE)]
    assert sum(minutes) < 15
    assert "doctor --self-test" in text
