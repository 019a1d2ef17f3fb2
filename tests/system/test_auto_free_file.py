"""What monitors that run side by side share about automatic frees."""

import json
import os
import subprocess
import sys
from pathlib import Path

import interpreters
import platformdirs
import pytest
from worker_kit import ROOT, TIMEOUT

from mpsbar.core.actions import AutoFreeRule, SetAutoFree
from mpsbar.system import paths
from mpsbar.system.auto_free_file import SharedAutoFree

GB = 1 << 30
HERE, PARENT = os.getpid(), os.getppid()


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MPSBAR_DATA_DIR", str(tmp_path))


def test_a_choice_of_one_is_read_by_the_other_once():
    first, second = SharedAutoFree(), SharedAutoFree()
    assert second.read() is None
    first.write(SetAutoFree(HERE, 100.5, AutoFreeRule(2 * GB)))
    first.write(SetAutoFree(PARENT, 99.0, AutoFreeRule(free_when_idle=False)))
    both = {(HERE, 100.5): AutoFreeRule(2 * GB), (PARENT, 99.0): AutoFreeRule(None, False)}
    assert (second.read(), second.read(), first.read()) == (both, None, both)
    second.write(SetAutoFree(HERE, 100.5, AutoFreeRule()))  # as for all again
    assert first.read() == {(PARENT, 99.0): AutoFreeRule(None, False)}
    assert paths.auto_free_file().stat().st_mode & 0o777 == 0o600


def test_its_place_is_asked_for_once_not_at_each_tick(monkeypatch):
    shared = SharedAutoFree()
    monkeypatch.setattr(paths, "data_folder", lambda: 1 / 0)
    assert shared.read() is None


def test_choices_for_processes_that_have_ended_are_dropped_by_the_next(workers):
    worker = workers.run([sys.executable, "-c", "pass"])
    worker.process.wait()
    shared = SharedAutoFree()
    shared.write(SetAutoFree(worker.pid, 1.0, AutoFreeRule(GB)))
    shared.write(SetAutoFree(HERE, 1.0, AutoFreeRule(GB)))
    assert shared.read() == {(HERE, 1.0): AutoFreeRule(GB)}


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[", "[1]", "[[7, 1.0, 5]]", "[[7, 1.0, -1, null]]", "[[true, 1.0, 5, null]]",
     '[[7, "x", 5, null]]', "[[7, NaN, 5, null]]", "[[7, 1.0, 1e99, null]]", "[[7, 1.0, 5, 1]]",
     "[[1, 1.0, 5, null]]", "[[7, null, 5, null]]", "[" * 60_000, "[1," * 20_000, " " * 100_000],
)  # fmt: skip
def test_nonsense_is_no_choice(text):
    paths.auto_free_file().write_text(text)
    paths.auto_free_file().chmod(0o600)
    shared = SharedAutoFree()
    assert shared.read() == {}
    shared.write(SetAutoFree(HERE, 1.0, AutoFreeRule(GB)))
    assert json.loads(paths.auto_free_file().read_text()) == [[HERE, 1.0, GB, None]]
    moved = paths.auto_free_file().parent.glob("auto-free.json.broken-*")
    assert [file.read_text() for file in moved] == [text]


DICTIONARY = """
from mpsbar.system import paths
from mpsbar.system.auto_free_file import SharedAutoFree
paths.auto_free_file().write_text("{}")
paths.auto_free_file().chmod(0o600)
print(SharedAutoFree().read())
"""


@pytest.mark.parametrize("version", interpreters.VERSIONS[-3:])
def test_a_dictionary_is_no_choice_where_a_slice_can_be_a_key(version, tmp_path):
    """From 3.12 on: `{}[:200]` is a KeyError there."""
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "platformdirs").symlink_to(Path(platformdirs.__file__).parent)
    done = subprocess.run(
        [interpreters.need(version), "-c", DICTIONARY],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(packages)])},
        capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    said = f"mpsbar will not use {tmp_path / 'auto-free.json'}: it is damaged\n"
    assert (done.stdout, done.stderr) == ("{}\n", said)


OTHER = """
import sys
from mpsbar.system.auto_free_file import SharedAutoFree
shared = SharedAutoFree()
print("may" if shared.may_free() else "may not", flush=True)
sys.stdin.read()
"""


def test_one_process_at_a_time_frees_and_the_next_follows_when_it_ends(workers):
    command = [sys.executable, "-c", OTHER]
    other = workers.run(command, popen={"stdin": subprocess.PIPE}, PYTHONPATH=str(ROOT))
    other.wait_line("may")
    shared = SharedAutoFree()
    assert [shared.may_free(), shared.may_free()] == [False, False]
    other.process.kill()
    other.process.wait()
    assert shared.may_free()
    shared.close()
