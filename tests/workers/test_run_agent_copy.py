"""The copy of the agent that `mpsbar run` uses in the app: whole, once, and the app stays as it is."""

import os
import subprocess
import sys

import pytest

from mpsbar.agent import __version__
from mpsbar.workers import run
from mpsbar.workers.run import build_environment, copy_agent


def test_it_is_whole_and_made_once(tmp_path):
    site = copy_agent(tmp_path / "data")
    assert site == tmp_path / f"data/agent-{__version__}/site"
    names = {p.relative_to(site.parent) for p in site.parent.rglob("*.py")}
    compare = {name for name in names if name.parts[0] == "compare"}
    assert names - compare == {p.relative_to(run._AGENT) for p in run._AGENT.rglob("*.py")}
    source = run._AGENT.parent / "dtypes/compare"
    assert {name.name for name in compare} == {p.name for p in source.glob("*.py")}
    before = (site / "sitecustomize.py").stat().st_ino
    assert copy_agent(tmp_path / "data") == site
    assert (site / "sitecustomize.py").stat().st_ino == before
    assert os.listdir(tmp_path / "data") == [f"agent-{__version__}"]


def test_a_damaged_one_is_made_anew(tmp_path):
    site = copy_agent(tmp_path)
    (site.parent / "startup_hook.py").write_text("broken")
    copy_agent(tmp_path)
    assert (site.parent / "startup_hook.py").read_bytes() == (
        run._AGENT / "startup_hook.py"
    ).read_bytes()
    assert os.listdir(tmp_path) == [f"agent-{__version__}"]


def test_a_pipe_in_the_place_of_a_file_makes_nobody_wait(tmp_path):
    site = copy_agent(tmp_path)
    (site.parent / "startup_hook.py").unlink()
    os.mkfifo(site.parent / "startup_hook.py")
    assert (copy_agent(tmp_path).parent / "startup_hook.py").is_file()


def test_a_place_that_cannot_be_written_is_an_oserror(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"Not a directory|exists"):
        copy_agent(tmp_path / "file")


def test_a_python_that_is_run_with_it_is_seen(tmp_path, workers):
    """What it compiles lies beside the copy."""
    (tmp_path / "torch.py").write_text("__version__ = 'stand-in'\n")
    env = build_environment(workers.env(PYTHONPATH=str(tmp_path)), copy_agent(tmp_path / "data"))
    code = (
        "import torch, sys; print(len(sys._current_frames()), sys.modules['mpsbar_agent'].__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("2 "), done.stderr
    assert str(tmp_path / "data") in done.stdout
