"""The formula's syntax, the release notes and the checklist: that all of them speak of this version."""

import re
import shutil
import subprocess

import pytest
from worker_kit import ROOT

import mpsbar

FORMULA = ROOT / "packaging/homebrew/mpsbar.rb"


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
