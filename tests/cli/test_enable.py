"""mpsbar enable, disable and enable --list as a person types them."""

import shutil
import subprocess
import sys
from functools import partial

import interpreters
import pytest
from cli.command_kit import NO_ACTIVE_PYTHON, run_command

from mpsbar import __version__


@pytest.fixture
def mpsbar(workers):
    places = {"IPYTHONDIR": str(workers.folder / "ipython")}
    return partial(run_command, workers, **NO_ACTIVE_PYTHON, **places)


@pytest.fixture
def venv(workers):
    python = interpreters.need(f"{sys.version_info[0]}.{sys.version_info[1]}")
    folder = workers.folder / "venv"
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder


def test_the_whole_round(mpsbar, venv, workers):
    python = str(venv / "bin" / "python")
    assert mpsbar("enable", "--list").stdout == (
        "No environment is enabled. To enable one: mpsbar enable --python PATH\n"
    )
    done = mpsbar("enable", "--python", python)
    assert (done.returncode, done.stderr) == (
        0,
        f"mpsbar: neither PyTorch nor MLX is installed in {venv}: nothing is shown until one is\n",
    )
    assert done.stdout == (
        f"{venv}: enabled, agent {__version__} answered. "
        "Processes that import PyTorch or MLX are shown the next time they start.\n"
    )
    again = mpsbar("enable", "--python", python)
    assert again.stdout == f"{venv}: already enabled (agent {__version__})\n"
    assert mpsbar("enable", "--list").stdout == f"{python}  agent {__version__}\n"
    assert mpsbar("disable", "--python", python).stdout == f"{venv}: disabled\n"
    assert mpsbar("disable", "--python", python).stdout == f"{venv}: was not enabled\n"
    assert list((workers.folder / "data").iterdir()) == []


def test_the_active_environment_is_the_default(mpsbar, venv):
    done = mpsbar("enable", VIRTUAL_ENV=str(venv))
    assert done.stdout.startswith(f"{venv}: enabled, agent")


def test_an_outdated_copy_is_refreshed_when_it_is_listed(mpsbar, venv):
    python = str(venv / "bin" / "python")
    mpsbar("enable", "--python", python)
    (info,) = venv.glob("lib/python*/site-packages/mpsbar_agent-*.dist-info")
    info.rename(info.with_name("mpsbar_agent-0.0.9.dist-info"))
    text = (info.with_name("mpsbar_agent-0.0.9.dist-info") / "RECORD").read_text()
    (info.with_name("mpsbar_agent-0.0.9.dist-info") / "RECORD").write_text(
        text.replace(info.name, "mpsbar_agent-0.0.9.dist-info")
    )
    listed = mpsbar("enable", "--list").stdout
    assert listed == f"{python}  agent {__version__}, refreshed (was 0.0.9)\n"
    assert mpsbar("enable", "--list").stdout == f"{python}  agent {__version__}\n"


def test_one_that_is_gone_is_listed_as_such(mpsbar, venv):
    python = str(venv / "bin" / "python")
    mpsbar("enable", "--python", python)
    venv.rename(venv.with_name("moved"))
    assert mpsbar("enable", "--list").stdout == f"{python}  unusable: {python} does not exist\n"


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["enable", "--python", "/nowhere/python"], 1, "mpsbar: /nowhere/python does not exist or can't be run"),
        (["enable", "--python", "cat"], 1, "is not a usable Python"),
        (["disable", "--python", "/nowhere/python"], 1, "mpsbar: /nowhere/python does not exist"),
        (["enable", "--list", "--jupyter"], 2, "mpsbar enable: argument --jupyter: not allowed with argument --list"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_sentence(mpsbar, arguments, code, line):
    done = mpsbar(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert line in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_agent_that_does_not_answer_is_said(mpsbar, venv):
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "a.pth").write_text("import sys; sys.meta_path = list(sys.meta_path)\n")
    (site / "zz.pth").write_text(
        "import sys; sys.meta_path[:] = [f for f in sys.meta_path if not hasattr(f, 'watches_for_mpsbar')]\n"
    )
    done = mpsbar("enable", "--python", str(venv / "bin" / "python"))
    assert done.returncode == 1
    assert "is enabled, but its agent did not answer" in done.stderr


def test_the_ipython_profile_on_and_off(mpsbar, workers):
    on = mpsbar("enable", "--jupyter")
    (file,) = [path for path in (workers.folder / "ipython").rglob("*") if path.is_file()]
    assert on.stdout.startswith(f"{file}: every kernel and IPython shell")
    assert mpsbar("disable", "--jupyter").stdout == f"{file}: removed\n"
    assert not (workers.folder / "ipython").exists()
    assert mpsbar("disable", "--jupyter").stdout == "mpsbar is not in the IPython profile\n"


def test_a_file_of_that_name_that_is_not_ours_is_left_alone(mpsbar, workers):
    mpsbar("enable", "--jupyter")
    (file,) = [path for path in (workers.folder / "ipython").rglob("*") if path.is_file()]
    file.write_text("mine = 1\n")
    done = mpsbar("enable", "--jupyter")
    assert done.returncode == 1
    assert done.stderr.startswith("mpsbar: ")
    assert file.read_text() == "mine = 1\n"


def test_disable_all_takes_out_what_was_enabled(mpsbar, venv):
    python = str(venv / "bin/python")
    assert mpsbar("enable", "--python", python).returncode == 0
    assert mpsbar("enable", "--jupyter").returncode == 0
    done = mpsbar("disable", "--all")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{venv}: disabled\n" in done.stdout
    assert "startup/50-mpsbar.py: removed\n" in done.stdout
    assert mpsbar("enable", "--list").stdout.startswith("No environment is enabled")


def test_what_could_not_be_removed_stays_known(mpsbar, venv, workers):
    python = venv / "bin" / "python"
    mpsbar("enable", "--python", str(python))
    (record,) = venv.rglob("mpsbar_agent-*.dist-info/RECORD")
    record.unlink()
    record.mkdir()  # as good as a folder that cannot be changed, for root too
    done = mpsbar("disable", "--python", str(python))
    assert done.returncode == 1
    assert done.stderr.startswith("mpsbar: couldn't change ")
    assert "internal error" not in done.stderr
    assert str(python) in (workers.folder / "data" / "enabled.json").read_text()


def test_a_data_folder_that_cannot_be_changed_has_its_sentence(
    mpsbar, venv, workers, read_only, light_torch
):
    python = str(venv / "bin" / "python")
    mpsbar("enable", "--python", python)
    with read_only(workers.folder / "data"):
        done = mpsbar("disable", "--python", python)
        assert done.returncode == 1
        assert f"{python} is still listed in" in done.stderr
        assert "internal error" not in done.stderr
        for arguments in (["disable", "--all"], ["enable", "--list"], ["report"], ["status"]):
            done = mpsbar(*arguments, PYTHONPATH=light_torch)
            assert "internal error" not in done.stderr, done.stderr
            assert "Traceback" not in done.stderr
    assert mpsbar("disable", "--python", python).stdout == f"{venv}: was not enabled\n"
    assert not (workers.folder / "data" / "enabled.json").exists()


def test_what_cannot_be_listed_is_not_enabled(mpsbar, venv, workers, read_only):
    """`disable --all` would not find it."""
    data = workers.folder / "data"
    data.mkdir(mode=0o700, exist_ok=True)
    with read_only(data):
        done = mpsbar("enable", "--python", str(venv / "bin/python"))
    assert done.returncode == 1
    assert f"couldn't add it to {data}/enabled.json, the list of what is enabled" in done.stderr
    assert not list(venv.rglob("*mpsbar*"))


def test_what_could_not_be_enabled_is_not_listed(mpsbar, venv, read_only):
    (site,) = venv.glob("lib/python*/site-packages")
    with read_only(site):
        assert mpsbar("enable", "--python", str(venv / "bin/python")).returncode == 1
    assert mpsbar("enable", "--list").stdout.startswith("No environment is enabled")


def test_disable_all_forgets_what_is_gone(mpsbar, venv):
    python = str(venv / "bin/python")
    assert mpsbar("enable", "--python", python).returncode == 0
    shutil.rmtree(venv)
    done = mpsbar("disable", "--all")
    assert done.returncode == 0
    assert f"{python}: no longer exists\n" in done.stdout
    assert mpsbar("enable", "--list").stdout.startswith("No environment is enabled")
