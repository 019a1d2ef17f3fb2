"""What is asked of a Python before it is enabled, and which will not do."""

import os
import shutil
from pathlib import Path

import interpreters
import pytest

from mpsbar.system import paths
from mpsbar.workers import enable as setup
from mpsbar.workers.environments import (
    UnusablePythonError,
    parse_environment,
    read_enabled,
    read_environment,
    remember_enabled,
)


@pytest.mark.starts_processes
def test_endless_output_is_neither_kept_nor_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("mpsbar.workers.environments.ASK_SECONDS", 1.0)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec yes\n")
    python.chmod(0o755)
    with pytest.raises(UnusablePythonError, match="did not answer within 1 s"):
        read_environment(str(python))


def answer(**changes):
    return {
        "implementation": "cpython", "version": [3, 12], "prefix": "/x", "site": "/x/site",
        "managed": False, "has_mpsbar": False,
    } | changes  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ({}, "p is not a usable Python"),
        ({"version": [3, 12]}, "p is not a usable Python"),
        (answer(version="3.12"), "p is not a usable Python"),
        (answer(version=[3, "12"]), "p is not a usable Python"),
        (answer(version=[3]), "p is not a usable Python"),
        (answer(version=[3, 10**9]), "p is not a usable Python"),
        (answer(version=[True, True]), "p is not a usable Python"),
        (answer(implementation=["cpython"]), "p is not a usable Python"),
        (answer(site="lib/site"), "p is not a usable Python"),
        (answer(site="/x/../../etc"), "p is not a usable Python"),
        (answer(site=7), "p is not a usable Python"),
        (answer(site="/x" * 600), "p is not a usable Python"),
        (answer(prefix="/x\x1b[2J"), "p is not a usable Python"),
        (answer(prefix=None), "p is not a usable Python"),
        (answer(managed=None), "p is not a usable Python"),
        (answer(implementation="py\x1b[2Jpy"), "p is py\ufffd[2Jpy 3.12; CPython 3.9 or later is required"),
        (answer(version=[3, 8]), "p is cpython 3.8; CPython 3.9 or later is required"),
        (answer(implementation="pypy"), "p is pypy 3.12; CPython 3.9 or later is required"),
        (answer(managed=True), "p is managed by the system (EXTERNALLY-MANAGED): create a venv and enable that, or use mpsbar run"),
    ],
)  # fmt: skip
def test_what_will_not_do_is_one_sentence(answers, sentence):
    with pytest.raises(UnusablePythonError) as problem:
        parse_environment("p", answers)
    assert str(problem.value) == sentence


@pytest.mark.starts_processes
def test_one_that_hangs_is_ended_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr("mpsbar.workers.environments.ASK_SECONDS", 1.0)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nsleep 600\n")
    python.chmod(0o755)
    with pytest.raises(UnusablePythonError, match="did not answer within 1 s"):
        read_environment(str(python))


@pytest.mark.starts_processes
@pytest.mark.parametrize("path", ["/nowhere/python", "/etc/passwd", "/bin/cat", "\0"])
def test_a_path_that_is_no_python(path):
    with pytest.raises(UnusablePythonError):
        read_environment(path)


@pytest.mark.starts_processes
def test_an_externally_managed_python_is_recognised(tmp_path):
    """A conda-like prefix laid out by hand, with and without the marker of PEP 668."""
    base = Path(interpreters.need("3.11")).resolve()
    prefix = tmp_path / "conda"
    (prefix / "bin").mkdir(parents=True)
    lib = prefix / "lib" / "python3.11"
    (lib / "site-packages").mkdir(parents=True)
    for entry in (base.parents[1] / "lib" / "python3.11").iterdir():
        if entry.name != "site-packages":
            (lib / entry.name).symlink_to(entry)
    python = prefix / "bin" / "python"
    shutil.copy(base, python)
    (prefix / "conda-meta").mkdir()
    environment = read_environment(str(python))
    assert environment.site == lib / "site-packages"
    assert setup.enable(environment)
    assert setup.read_answer(environment, dict(os.environ)) == setup.__version__
    assert setup.disable(environment)
    (lib / "EXTERNALLY-MANAGED").write_text("[externally-managed]\n")
    with pytest.raises(UnusablePythonError, match="managed by the system"):
        read_environment(str(python))


def test_an_apps_own_python_is_left_alone():
    site = "/Applications/mpsbar.app/Contents/Resources/lib/python3.13/site-packages"
    with pytest.raises(UnusablePythonError, match="belongs to an app, whose signature"):
        parse_environment("/x/python", answer(site=site))


@pytest.mark.parametrize("damage", [lambda data: data[:-3], lambda data: b'{"pythons": 3}'])
def test_a_damaged_list_is_not_written_over(private, caplog, damage):
    remember_enabled("/a")
    remember_enabled("/b")
    file = paths.enabled_file()
    damaged = damage(file.read_bytes())
    file.write_bytes(damaged)
    assert read_enabled() == []
    assert remember_enabled("/c") is None
    (moved,) = file.parent.glob("enabled.json.broken-*")
    assert (read_enabled(), moved.read_bytes()) == (["/c"], damaged)
    assert caplog.messages == [
        f"mpsbar will not use {file}: it is damaged",
        f"{file} can't be used (it is damaged); it was renamed to {moved}, and a new one is started",
    ]


def test_a_list_that_cannot_be_read_is_left_alone_and_the_reason_said(private, caplog):
    remember_enabled("/a")
    file = paths.enabled_file()
    file.chmod(0o666)  # anybody may have written it
    before = file.read_bytes()
    assert "is writable by everyone" in (remember_enabled("/c") or "")
    assert file.read_bytes() == before
