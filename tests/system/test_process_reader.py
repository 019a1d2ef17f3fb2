"""Which Python a process runs, as its user would name it, and whether that one is enabled."""

import os

import pytest

from mpsbar.system.platform import Details
from mpsbar.system.process_reader import find_enabled, find_python


@pytest.fixture
def venv(tmp_path):
    """A venv whose python is a link to an interpreter elsewhere, and that interpreter."""
    base = tmp_path / "base/bin/python3.11"
    folder = tmp_path / "venv"
    for path in (base, folder / "bin/x", folder / "lib/python3.11/site-packages/torch/lib/x"):
        path.parent.mkdir(parents=True)
    base.touch(0o755)
    for name in ("python", "python3", "python3.11"):
        (folder / "bin" / name).symlink_to(base)
    return folder


def details(venv, *command, **variables):
    return Details(1.0, 1, command, str(venv.parent / "base/bin/python3.11"), variables)


def library(venv):
    return str(venv / "lib/python3.11/site-packages/torch/lib/libtorch_cpu.so")


@pytest.mark.parametrize(
    ("command", "variables", "name"),
    [
        (("{venv}/bin/python", "train.py"), {}, "python"),
        (("python", "train.py"), {"PATH": "/nowhere:{venv}/bin"}, "python"),
        (("python3", "train.py"), {"PATH": "{venv}/bin"}, "python3"),
        # what it says of itself leads nowhere: where torch was loaded from tells
        (("python", "train.py"), {"PATH": "/usr/bin"}, "python"),
        (("../venv/bin/python", "train.py"), {}, "python"),
        (("python3.12", "train.py"), {}, "python3.11"),
        (("gunicorn: worker [app]",), {}, "python3.11"),
        ((), {}, "python3.11"),
        (("/framework/Python", "x.py"), {"__PYVENV_LAUNCHER__": "{venv}/bin/python3"}, "python3"),
    ],
)
def test_a_venv_is_found_and_never_resolved(venv, command, variables, name):
    command = [part.format(venv=venv) for part in command]
    variables = {key: value.format(venv=venv) for key, value in variables.items()}
    found = find_python(details(venv, *command, **variables), library(venv))
    assert found == (f"{venv}/bin/{name}", str(venv))


def test_a_frozen_app_has_no_python_to_enable(venv):
    app = Details(1.0, 1, ("/apps/Paint",), "/apps/Paint", {})
    assert find_python(app, "/apps/lib/libtorch_cpu.so") == (None, None)
    assert find_python(Details(1.0, 1), library(venv)) == (None, None)


def test_a_library_from_elsewhere_leaves_what_the_process_says(venv):
    said = details(venv, f"{venv}/bin/python", "x.py")
    assert find_python(said, "/src/build/lib/libtorch_cpu.so") == (f"{venv}/bin/python", str(venv))


def test_the_executable_is_the_last_resort(tmp_path):
    executable = "/F/Versions/3.11/Resources/Python.app/Contents/MacOS/Python"
    found = find_python(Details(1.0, 1, ("Python", "x.py"), executable), "/x/libtorch.dylib")
    assert found == (executable, "/F/Versions/3.11")


def test_a_venv_that_borrows_torch_is_still_what_runs(venv, tmp_path):
    """With --system-site-packages torch lies in the base; connecting that would be another's."""
    borrowed = str(tmp_path / "base/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so")
    process = details(venv, f"{venv}/bin/python", "train.py")
    assert find_python(process, borrowed)[0] == str(tmp_path / "base/bin/python3.11")  # no mark
    (venv / "pyvenv.cfg").touch()
    assert find_python(process, borrowed) == (f"{venv}/bin/python", str(venv))
    # a venv that runs another file is only a name
    other = tmp_path / "other/bin/python"
    other.parent.mkdir(parents=True)
    other.touch(0o755)
    (tmp_path / "other/pyvenv.cfg").touch()
    assert find_python(details(venv, str(other)), borrowed)[0] == str(
        tmp_path / "base/bin/python3.11"
    )


def test_an_environment_is_enabled_since_its_start_up_file_is_there(venv, tmp_path):
    assert find_enabled(str(venv), library(venv), {}) is None
    file = venv / "lib/python3.11/site-packages/_mpsbar_start.py"
    file.touch()
    os.utime(file, (5.0, 5.0))
    assert find_enabled(str(venv), library(venv), {}) == 5.0
    # The torch of a venv that borrows it lies elsewhere.
    borrowed = "/usr/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so"
    assert find_enabled(str(venv), borrowed, {}) == 5.0
    assert find_enabled(None, library(venv), {}) is None
    assert find_enabled(str(venv), "/src/build/lib/libtorch_cpu.so", {}) is None


@pytest.mark.parametrize(
    ("path", "enabled"),
    [
        ("/x/mpsbar/agent/site", 0.0),
        ("/Users/me/Library/Application Support/mpsbar/agent-0.1.0/site:/mine", 0.0),
        ("/mine", None),
        ("/mine:/x/mpsbar/agent/site", None),  # another sitecustomize may come first
        ("", None),
    ],
)
def test_mpsbar_run_is_seen_in_its_environment(path, enabled):
    assert find_enabled(None, "", {"PYTHONPATH": path}) == enabled
