"""Pythons are found by their files, on a pretended Mac, and none is run to find it."""

import json
import os

import pytest
from desktop_kit import StandIn

from mpsbar.system import installed_pythons
from mpsbar.system.installed_pythons import find_installed, is_usable_shim


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "Users/jane"
    home.mkdir(parents=True)
    return home


def add_python(tmp_path, where, name="python3", framework="torch"):
    """One that would leave a trace if it were run."""
    python = tmp_path / where / "bin" / name
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    python.chmod(0o755)
    packages = tmp_path / where / "lib/python3.12/site-packages"
    packages.mkdir(parents=True)
    if framework:
        (packages / framework).mkdir()
    return str(python)


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("opt/homebrew", "python3.12"),
        ("usr/local", "python3"),
        ("Library/Frameworks/Python.framework/Versions/3.12", "python3"),
        ("Users/jane/.pyenv/versions/3.12.4", "python"),
        ("Users/jane/.local/share/uv/python/cpython-3.12-macos-aarch64-none", "python3"),
        ("Users/jane/miniforge3", "python"),
        ("Users/jane/miniforge3/envs/train", "python"),
        ("opt/miniconda3/envs/train", "python"),
        ("opt/homebrew/Caskroom/miniforge/base/envs/train", "python"),
        ("opt/homebrew/Caskroom/miniconda/base", "python"),
        ("Users/jane/.local/share/mamba/envs/train", "python"),
    ],
)
@pytest.mark.parametrize("framework", ["torch", "mlx"])
def test_where_people_have_them(tmp_path, home, where, name, framework):
    python = add_python(tmp_path, where, name, framework)
    assert find_installed(home, tmp_path) == [python]
    assert not (tmp_path / "was-run").exists()


def test_one_without_a_framework_is_not_worth_a_look(tmp_path, home):
    add_python(tmp_path, "opt/homebrew", framework="")
    assert find_installed(home, tmp_path) == []


def test_what_jupyter_and_conda_name(tmp_path, home):
    kernel = add_python(tmp_path, "work/venv", "python")
    listed = add_python(tmp_path, "data/env", "python")
    for number, argv in enumerate(([kernel, "-m", "ipykernel"], ["python3"], [], "x", [7])):
        folder = home / f"Library/Jupyter/kernels/k{number}"
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(json.dumps({"argv": argv}))
    (home / "Library/Jupyter/kernels/k1/kernel.json").write_text("{")
    (home / ".conda").mkdir()
    (home / ".conda/environments.txt").write_text(f"{tmp_path}/data/env\n\nrelative\n/gone\n")
    assert find_installed(home, tmp_path) == [kernel, listed]


def test_a_pipe_in_the_place_of_such_a_file_makes_nobody_wait(tmp_path, home):
    for name in (".conda/environments.txt", "Library/Jupyter/kernels/mine/kernel.json"):
        (home / name).parent.mkdir(parents=True)
        os.mkfifo(home / name)
    assert find_installed(home, tmp_path) == []


def test_each_environment_once(tmp_path, home):
    python = add_python(tmp_path, "opt/homebrew", "python3.12")
    (tmp_path / "opt/homebrew/bin/python3").symlink_to(python)
    assert len(find_installed(home, tmp_path)) == 1


@pytest.mark.parametrize(("code", "is_usable"), [(0, True), (2, False)])
def test_apples_python_is_used_only_where_it_opens_no_dialog(
    tmp_path, monkeypatch, code, is_usable
):
    shim = tmp_path / "python3"
    shim.touch()
    monkeypatch.setattr(installed_pythons, "APPLE_PYTHON", str(shim))
    monkeypatch.setattr(
        installed_pythons, "_SELECT_SECONDS", 120.0
    )  # a Python may take long to start
    select = StandIn(tmp_path, "xcode-select", code=code)
    assert is_usable_shim(str(shim), str(select.path)) is is_usable
    assert select.calls == [[b"-p"]]
    assert not is_usable_shim(str(shim), "/nonexistent")
    assert is_usable_shim(str(tmp_path / "another"), "/nonexistent")


def test_the_doctor_of_a_mac_looks_there_and_not_at_the_shim(tmp_path, home, monkeypatch):
    from types import SimpleNamespace

    from mpsbar.core.snapshot import Snapshot
    from mpsbar.doctor import pythons

    python = add_python(tmp_path, "Users/jane/miniforge3", "python")
    shim = add_python(tmp_path, "usr", "python3", framework="")
    monkeypatch.setattr(installed_pythons, "APPLE_PYTHON", shim)
    monkeypatch.setattr(installed_pythons, "XCODE_SELECT", "/nonexistent")
    monkeypatch.setattr(pythons, "sys", SimpleNamespace(platform="darwin", executable=""))
    monkeypatch.setenv("PATH", str(tmp_path / "usr/bin"))
    monkeypatch.setenv("HOME", str(home))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    assert pythons.find_pythons(Snapshot(time=0.0), []) == [python]


@pytest.mark.parametrize("is_connected", [True, False])
def test_a_running_environment_with_mlx_alone_can_be_connected(tmp_path, monkeypatch, is_connected):
    from mpsbar.core.machine import Process
    from mpsbar.core.snapshot import Snapshot, Worker
    from mpsbar.doctor import pythons

    python = add_python(tmp_path, "env", "python", framework="mlx")
    worker = Worker(1, "a", "live", 0.0, executable=python, frameworks={"mlx": "0.29"})
    process = Process(1, 0.0, "a", frameworks=("mlx",), python=python)
    seen = Snapshot(0.0, (worker,)) if is_connected else Snapshot(0.0, processes=(process,))
    assert python in pythons.find_usable(seen, [])
    assert python not in pythons.find_pythons(seen, [])  # for what needs torch
