"""The start-up file: written whole, only over our own, removed completely, quiet everywhere."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from worker_kit import ROOT, TIMEOUT

from mpsbar.workers import jupyter

NO_COPY = Path("/nonexistent")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An IPython directory that does not exist yet."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "a" / "ipython"))
    return tmp_path


def tree(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def test_enable_and_disable_leave_the_tree_as_it_was(folder):
    before = tree(folder)
    path = jupyter.enable(NO_COPY)
    assert path == folder / "a/ipython/profile_default/startup/50-mpsbar.py"
    assert set(tree(folder)) == {
        "a",
        "a/ipython",
        "a/ipython/profile_default",
        "a/ipython/profile_default/startup",
        "a/ipython/profile_default/startup/50-mpsbar.py",
    }
    assert jupyter.enable(NO_COPY) == path  # again: nothing is forgotten of the first time
    assert jupyter.disable() == path
    assert tree(folder) == before
    assert jupyter.disable() is None


def test_folders_and_files_of_others_stay(folder):
    startup = folder / "a/ipython/profile_default/startup"
    startup.mkdir(parents=True)  # empty, and not ours
    before = tree(folder)
    jupyter.enable(NO_COPY)
    jupyter.disable()
    assert tree(folder) == before
    shutil.rmtree(folder / "a")
    jupyter.enable(NO_COPY)
    (startup.parent / "history.sqlite").touch()  # IPython has used the folder since
    jupyter.disable()
    assert not startup.exists()
    assert (startup.parent / "history.sqlite").exists()


def test_what_is_not_ours_is_never_touched(folder):
    path = folder / "a/ipython/profile_default/startup/50-mpsbar.py"
    path.parent.mkdir(parents=True)
    path.write_text("import mine\n")
    with pytest.raises(jupyter.ForeignFileError) as problem:
        jupyter.enable(NO_COPY)
    assert str(problem.value) == f"{path} was not written by mpsbar and was left unchanged"
    assert jupyter.disable() is None
    assert path.read_text() == "import mine\n"
    path.unlink()
    path.symlink_to("nowhere")
    with pytest.raises(jupyter.ForeignFileError):
        jupyter.enable(NO_COPY)
    assert path.is_symlink()


def test_an_older_file_of_ours_is_brought_up_to_date(folder):
    path = jupyter.enable(NO_COPY)
    newest = path.read_text()
    path.write_text(newest.partition("\n")[0] + "\nold\n")
    jupyter.enable(NO_COPY)
    assert path.read_text() == newest


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_its_mode_is_what_the_user_wants_of_files(folder, umask):
    old = os.umask(umask)
    try:
        path = jupyter.enable(NO_COPY)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_full_disk_leaves_the_old_file_and_no_draft(folder, monkeypatch):
    path = jupyter.enable(NO_COPY)
    before = tree(folder)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        jupyter.enable(NO_COPY)
    assert tree(folder) == before
    assert path.exists()


@pytest.mark.parametrize(
    ("there", "variable", "place"),
    [
        ([], None, ".ipython"),
        ([".config"], None, ".ipython"),
        ([".config/ipython"], None, ".config/ipython"),
        ([".config/ipython", ".ipython"], None, ".ipython"),
        ([".config/ipython"], "~/mine/../ours", "ours"),
    ],
)
def test_it_is_where_ipython_looks(tmp_path, monkeypatch, there, variable, place):
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("IPYTHONDIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    if variable is not None:
        monkeypatch.setenv("IPYTHONDIR", variable)
    for folder in there:
        (tmp_path / folder).mkdir(parents=True)
    found = jupyter.ipython_folder()
    assert found == tmp_path / place
    assert ask_ipython() == str(found)


def ask_ipython():
    code = "import IPython.paths; print(IPython.paths.get_ipython_dir())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return done.stdout.strip()


MAGIC = "print(get_ipython().find_line_magic('mpsbar') is not None, '_mpsbar_load' in globals())"
# Says "not installed" for names the environment must not have.
HIDE = """\
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {hidden}:
            raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)
sys.meta_path.insert(0, Hide())
import IPython
sys.exit(IPython.start_ipython(['--no-banner', '-c', {code!r}]))
"""


def run_ipython(folder, hidden, code=MAGIC, **env):
    env = {k: v for k, v in os.environ.items() if not k.startswith("MPSBAR_")} | env
    command = [sys.executable, "-c", HIDE.format(hidden=hidden, code=code)]
    done = subprocess.run(
        command,
        env=env | {"MPSBAR_RUN_DIR": str(folder / "run")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    return done.stdout.strip(), done.stderr


def test_it_loads_under_both_names_and_is_quiet_without_either(folder):
    jupyter.enable(NO_COPY)
    both = ["mpsbar", "mpsbar_agent"]
    assert run_ipython(folder, both) == ("False False", "")
    assert run_ipython(folder, ["mpsbar_agent"], PYTHONPATH=str(ROOT)) == ("True False", "")
    shutil.copytree(ROOT / "mpsbar/agent", folder / "site/mpsbar_agent")
    copied = run_ipython(folder, ["mpsbar"], PYTHONPATH=str(folder / "site"))
    assert copied == ("True False", "")


def test_a_broken_copy_does_not_disturb(folder):
    jupyter.enable(NO_COPY)
    package = folder / "site/mpsbar_agent"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("1 / 0\n")
    assert run_ipython(folder, ["mpsbar"], PYTHONPATH=str(folder / "site")) == ("False False", "")
