"""Real environments of five Pythons: enabled, used, listed, disabled, and nothing left behind."""

import errno
import os
import shutil
import subprocess
import sys
import zipfile
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import interpreters
import pytest
from worker_kit import ROOT, TIMEOUT, Client, wait_for

from mpsbar.system import this_computer
from mpsbar.system.process_reader import examine_process
from mpsbar.workers import enable as setup
from mpsbar.workers.environments import (
    Environment,
    UnusablePythonError,
    read_environment,
)

# torch is to be had for one Python only here, so the others import a stand-in of that name.
TORCH = "__version__ = 'stand-in'\nvalue = 42\n"
THREADS = "import sys; print(len(sys._current_frames()))"
# Waits in the midst of torch's import, when its libraries are loaded: for a line.
HELD_IMPORT = """
import sys
class Hold:
    def find_spec(self, name, path=None, target=None):
        if name == "torch.nn":
            print("importing", flush=True)
            sys.stdin.readline()
sys.meta_path.insert(0, Hold())
import torch
sys.stdin.read()
"""


class Venv:
    def __init__(self, folder: Path, python: str, build_once) -> None:
        """A copy of one that was made by that Python: it looks for its library beside itself."""
        self.folder = folder
        made, _ = build_once(f"venv-{Path(python).name}", partial(make_venv, python))
        shutil.copytree(made / "venv", folder, symlinks=True)
        self.python = str(folder / "bin" / "python")
        self.site = next(folder.glob("lib/python*/site-packages"))
        (self.site / "torch").mkdir()
        (self.site / "torch" / "__init__.py").write_text(TORCH)

    def run(self, code, *options, env=None, **extra):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MPSBAR"))}
        return subprocess.run(
            [self.python, *options, "-c", code],
            env=clean | (env or {}), capture_output=True, text=True, timeout=TIMEOUT, cwd="/", **extra,
        )  # fmt: skip

    def tree(self):
        files = (path for path in self.folder.rglob("*") if not path.is_symlink())
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes() if path.is_file() else None
            for path in files
        }


def make_venv(python, folder):
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    return ""


@pytest.fixture(params=interpreters.VERSIONS)
def venv(request, tmp_path, build_once):
    return Venv(tmp_path / "venv", interpreters.need(request.param), build_once)


@pytest.fixture
def this_venv(tmp_path, build_once):
    """One of the Python that runs the tests."""
    base = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return Venv(tmp_path / "venv", interpreters.need(base), build_once)


def test_enabled_used_and_disabled_leaves_no_trace(venv, workers):
    env = {"MPSBAR_RUN_DIR": str(workers.run_dir)}
    venv.run("import torch")
    before = venv.tree()
    environment = read_environment(venv.python)
    assert setup.enable(environment)
    assert not setup.enable(environment)
    assert setup.read_answer(environment, dict(os.environ)) == setup.__version__
    seen = venv.run(f"import torch; {THREADS}; print(torch.value)", "-W", "error", env=env)
    assert (seen.stdout, seen.stderr) == ("2\n42\n", "")
    assert setup.disable(environment)
    assert not setup.disable(environment)
    assert venv.tree() == before


@pytest.mark.parametrize("options", [(), ("-I",), ("-E",), ("-s",), ("-B",), ("-O",)])
def test_it_starts_under_the_usual_options(this_venv, workers, options):
    setup.enable(read_environment(this_venv.python))
    env = {"MPSBAR_RUN_DIR": str(workers.run_dir)}
    seen = this_venv.run(f"import torch; {THREADS}", *options, env=env)
    assert (seen.stdout, seen.stderr) == ("2\n", "")


BESIDE_OTHERS = """
import site, sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name == "torch": raise ImportError("blocked here")
sys.meta_path.insert(1, Block())  # behind ours, which asks it
try: import torch
except ImportError as error: print(error)
del sys.meta_path[1]
site.addsitedir({site!r})  # runs the line of the .pth once more, as Python itself does in a venv
print(sum(hasattr(f, "watches_for_mpsbar") for f in sys.meta_path) > 1)
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
print(interpreters.run_string(interpreters.create(), "import torch; print(torch.value, flush=True)"))
{threads}
import torch
{threads}
print(sum(hasattr(f, "watches_for_mpsbar") for f in sys.meta_path))
"""


def test_other_finders_subinterpreters_and_a_second_run_of_its_line(venv, workers):
    setup.enable(read_environment(venv.python))
    code = BESIDE_OTHERS.format(site=str(venv.site), threads=THREADS)
    seen = venv.run(code, "-u", "-W", "error", env={"MPSBAR_RUN_DIR": str(workers.run_dir)})
    expected = ["blocked here", "True", "42", "None", "1", "2", "0"]
    assert (seen.stdout.split("\n")[:-1], seen.stderr) == (expected, "")


def test_a_zipapp_importtime_and_no_site(this_venv, workers, tmp_path):
    setup.enable(read_environment(this_venv.python))
    env = {"MPSBAR_RUN_DIR": str(workers.run_dir)}
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", f"import torch; {THREADS}")
    app = subprocess.run(
        [this_venv.python, tmp_path / "app.pyz"],
        env=os.environ | env, capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert (app.stdout, app.stderr) == ("2\n", "")
    timed = this_venv.run(f"import torch; {THREADS}", "-X", "importtime", env=env)
    assert timed.stdout == "2\n"
    assert all(line.startswith("import time:") for line in timed.stderr.splitlines())
    without = this_venv.run("import sys; print(len(sys.meta_path))", "-S")
    assert (without.stdout, without.stderr) == ("3\n", "")


def test_only_looking_for_torch_does_not_use_the_hook_up(this_venv, workers):
    setup.enable(read_environment(this_venv.python))
    code = f"""
import importlib.util
for _ in range(3): importlib.util.find_spec("torch")
{THREADS}
import torch
{THREADS}
import sys; print([f for f in sys.meta_path if hasattr(f, "watches_for_mpsbar")])
"""
    seen = this_venv.run(code, env={"MPSBAR_RUN_DIR": str(workers.run_dir)})
    assert seen.stdout == "1\n2\n[]\n"


def test_a_torch_that_fails_to_import_is_the_users_own_error(this_venv, workers):
    setup.enable(read_environment(this_venv.python))
    (this_venv.site / "torch" / "__init__.py").write_text("raise ImportError('broken torch')")
    seen = this_venv.run("import torch", env={"MPSBAR_RUN_DIR": str(workers.run_dir)})
    assert seen.stderr.endswith("ImportError: broken torch\n")
    assert "mpsbar" not in seen.stderr.replace("_mpsbar_start.py", "")
    shutil.rmtree(this_venv.site / "torch")
    seen = this_venv.run("import torch")
    assert seen.stderr.endswith("ModuleNotFoundError: No module named 'torch'\n")
    assert "mpsbar" not in seen.stderr


def test_a_process_without_torch_is_left_alone(venv):
    """Not even threading is imported, and from 3.12 on a fork does not warn of threads."""
    setup.enable(read_environment(venv.python))
    code = "import sys; print(sorted(m for m in sys.modules if 'mpsbar' in m or m == 'threading'))"
    seen = venv.run(code, "-W", "error")
    assert (seen.stdout, seen.stderr) == ("[]\n", "")
    forked = venv.run("import os; pid = os.fork(); pid and os.waitpid(pid, 0)", "-W", "error")
    assert (forked.returncode, forked.stderr) == (0, "")


PROJECT = {
    "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\n'
    'build-backend = "setuptools.build_meta"\n[project]\nname = "x"\nversion = "1"\n'
    '[tool.setuptools]\npy-modules = ["x"]\n',
    "x.py": "",
    "test_x.py": "import os, subprocess, sys, warnings\n"
    "def test_fork():\n    pid = os.fork()\n    if not pid: os._exit(0)\n    os.waitpid(pid, 0)\n"
    "def test_child():\n"
    "    out = subprocess.run([sys.executable, '-W', 'error', '-c', 'print(1)'], capture_output=True)\n"
    "    assert (out.stdout, out.stderr) == (b'1\\n', b'')\n",
}


def test_pytest_pip_and_build_back_ends_are_not_disturbed(this_venv, tmp_path):
    """The tools of this environment, reached through a path, run by an enabled Python."""
    (this_venv.site / "tools.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    environment = read_environment(this_venv.python)
    setup.enable(Environment(environment.python, environment.version, "", environment.site, False))
    project = tmp_path / "project"
    project.mkdir()
    for name, text in PROJECT.items():
        (project / name).write_text(text)
    for command in (
        "pytest -q -W error -p no:cacheprovider -p no:hypothesispytest",
        "pip --version",
        "pip list",
        "pip wheel -q --no-deps --no-build-isolation -w out .",
    ):
        done = subprocess.run(
            [this_venv.python, "-m", *command.split()],
            cwd=project, capture_output=True, text=True, timeout=TIMEOUT,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_NO_INDEX": "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "mpsbar" not in done.stderr
        assert done.stderr == "" or command.startswith("pip")
    assert (project / "out" / "x-1-py3-none-any.whl").exists()


@pytest.mark.parametrize(
    "breakage",
    [
        lambda site: shutil.rmtree(site / "mpsbar_agent"),
        lambda site: (site / "_mpsbar_start.py").unlink(),
        lambda site: (site / "_mpsbar_start.py").write_text("this is not python"),
        lambda site: (site / "mpsbar_agent" / "life.py").write_text("raise SystemError('x')"),
        lambda site: (site / "mpsbar_agent" / "server.py").write_text("1 / 0"),
    ],
)
def test_a_missing_or_broken_agent_never_prints(this_venv, workers, breakage):
    setup.enable(read_environment(this_venv.python))
    breakage(this_venv.site)
    seen = this_venv.run(
        "import torch; print(torch.value)", env={"MPSBAR_RUN_DIR": str(workers.run_dir)}
    )
    assert (seen.stdout, seen.stderr) == ("42\n", "")


def test_an_agent_that_cannot_bind_is_silent_where_nobody_asked(this_venv):
    setup.enable(read_environment(this_venv.python))
    seen = this_venv.run("import torch; print(1)", env={"MPSBAR_RUN_DIR": "/proc/nowhere/run"})
    assert (seen.stdout, seen.stderr) == ("1\n", "")


def test_the_switch_turns_it_off_there_too(this_venv, workers):
    setup.enable(read_environment(this_venv.python))
    env = {"MPSBAR_RUN_DIR": str(workers.run_dir), "MPSBAR_DISABLE": "1"}
    assert this_venv.run(f"import torch; {THREADS}", env=env).stdout == "1\n"


def test_pip_sees_it_and_can_remove_it(this_venv):
    before = this_venv.tree()
    setup.enable(read_environment(this_venv.python))
    pip = [sys.executable, "-m", "pip", "--python", this_venv.python]
    listed = subprocess.run([*pip, "list"], capture_output=True, text=True, check=True)
    assert f"mpsbar-agent {setup.__version__}" in " ".join(listed.stdout.split())
    checked = subprocess.run([*pip, "check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    subprocess.run([*pip, "uninstall", "-y", "mpsbar-agent"], check=True, capture_output=True)
    assert this_venv.tree() == before


def test_uv_sees_it_and_can_remove_it(this_venv):
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        pytest.skip("no uv on this machine")
    before = this_venv.tree()
    setup.enable(read_environment(this_venv.python))
    listed = subprocess.run(
        [uv, "pip", "list", "--python", this_venv.python],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"mpsbar-agent {setup.__version__}" in " ".join(listed.stdout.split())
    subprocess.run(
        [uv, "pip", "uninstall", "--python", this_venv.python, "mpsbar-agent"],
        check=True, capture_output=True,
    )  # fmt: skip
    (this_venv.folder / ".lock").unlink(missing_ok=True)  # uv's own
    assert this_venv.tree() == before


def test_where_mpsbar_is_installed_only_the_start_up_is_added(this_venv, workers):
    (this_venv.site / "zz-mpsbar.pth").write_text(f"{ROOT}\n")
    environment = read_environment(this_venv.python)
    assert environment.has_mpsbar
    setup.enable(environment)
    assert not (this_venv.site / "mpsbar_agent").exists()
    env = {"MPSBAR_RUN_DIR": str(workers.run_dir)}
    seen = this_venv.run(
        f"import torch, sys; {THREADS}; print('mpsbar.agent.lifecycle' in sys.modules)", env=env
    )
    assert seen.stdout == "2\nTrue\n"


def test_the_copy_and_mpsbars_own_attach_are_one_agent(this_venv, workers):
    setup.enable(read_environment(this_venv.python))
    env = {"MPSBAR_RUN_DIR": str(workers.run_dir), "PYTHONPATH": str(ROOT)}
    seen = this_venv.run(f"import torch, mpsbar; print(mpsbar.attach()); {THREADS}", env=env)
    assert seen.stdout == "True\n2\n"


def test_an_upgrade_replaces_the_copy_whole(this_venv, monkeypatch):
    environment = read_environment(this_venv.python)
    monkeypatch.setattr(setup, "__version__", "0.0.9")
    monkeypatch.setattr(
        setup, "_METADATA", setup._METADATA.replace(setup._METADATA.split()[5], "0.0.9")
    )
    setup.enable(environment)
    assert setup.read_version(this_venv.site) == "0.0.9"
    old = this_venv.site / "mpsbar_agent" / "gone_in_the_next.py"
    old.write_text("")
    record = this_venv.site / "mpsbar_agent-0.0.9.dist-info" / "RECORD"
    record.write_text(record.read_text() + "mpsbar_agent/gone_in_the_next.py,,\n")
    monkeypatch.undo()
    assert setup.enable(environment)
    assert setup.read_version(this_venv.site) == setup.__version__
    assert not old.exists()
    assert len(list(this_venv.site.glob("mpsbar_agent-*.dist-info"))) == 1


def test_a_record_cannot_make_us_remove_what_is_not_ours(this_venv, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.touch()
    environment = read_environment(this_venv.python)
    setup.enable(environment)
    record = next(this_venv.site.glob("mpsbar_agent-*.dist-info/RECORD"))
    record.write_text(f"torch/__init__.py,,\nmpsbar_agent/../torch/__init__.py,,\n{theirs},,\n")
    setup.disable(environment)
    assert (this_venv.site / "torch" / "__init__.py").exists()
    assert theirs.exists()


def test_nothing_is_removed_or_written_through_a_linked_folder(this_venv, tmp_path):
    environment = read_environment(this_venv.python)
    setup.enable(environment)
    elsewhere = tmp_path / "elsewhere"
    (this_venv.site / "mpsbar_agent").rename(elsewhere)
    (this_venv.site / "mpsbar_agent").symlink_to(elsewhere)
    before = sorted(path.name for path in elsewhere.iterdir())
    with pytest.raises(UnusablePythonError, match="mpsbar_agent is a link to another folder"):
        setup.enable(environment)
    assert setup.disable(environment)
    assert sorted(path.name for path in elsewhere.iterdir()) == before
    assert not (this_venv.site / "mpsbar-agent.pth").exists()


def test_nothing_is_written_where_others_could_change_it(this_venv):
    """Also when an outdated copy is renewed, for which the Python itself is not asked."""
    environment = read_environment(this_venv.python)
    this_venv.site.chmod(0o777)
    before = sorted(path.name for path in this_venv.site.iterdir())
    with pytest.raises(UnusablePythonError, match="site-packages is writable by everyone"):
        setup.enable(environment)
    assert sorted(path.name for path in this_venv.site.iterdir()) == before


@pytest.mark.parametrize("name", ["mpsbar-agent.pth", "_mpsbar_start.py", "mpsbar_agent/server.py"])
def test_a_link_in_the_place_of_a_file_is_replaced(this_venv, tmp_path, name):
    """uv links files into its cache: what is written must not go there."""
    environment = read_environment(this_venv.python)
    (tmp_path / "cache").write_text("cached")
    (this_venv.site / name).parent.mkdir(exist_ok=True)
    (this_venv.site / name).symlink_to(tmp_path / "cache")
    assert setup.enable(environment)
    assert not (this_venv.site / name).is_symlink()
    assert (tmp_path / "cache").read_text() == "cached"


def test_a_linked_record_and_cache_are_not_followed(this_venv, tmp_path):
    environment = read_environment(this_venv.python)
    setup.enable(environment)
    (info,) = this_venv.site.glob("mpsbar_agent-*.dist-info")
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "_mpsbar_start.mine.pyc").touch()
    shutil.rmtree(this_venv.site / "__pycache__", ignore_errors=True)
    (this_venv.site / "__pycache__").symlink_to(cache)
    setup.disable(environment)
    assert (cache / "_mpsbar_start.mine.pyc").exists()
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "RECORD").write_text("mpsbar_agent/__init__.py,,\n")
    (this_venv.site / info.name).symlink_to(planted)
    (this_venv.site / "mpsbar_agent").mkdir()
    (this_venv.site / "mpsbar_agent" / "__init__.py").write_text("mine")
    assert not setup.disable(environment)
    assert (this_venv.site / "mpsbar_agent" / "__init__.py").read_text() == "mine"


@pytest.mark.parametrize("name", ["mpsbar-agent.pth", "_mpsbar_start.py", "RECORD"])
def test_a_pipe_in_the_place_of_a_file_makes_nobody_wait(this_venv, name):
    environment = read_environment(this_venv.python)
    setup.enable(environment)
    (path,) = this_venv.site.rglob(name)
    path.unlink()
    os.mkfifo(path)
    if name == "RECORD":
        with pytest.raises(UnusablePythonError, match="it is not a file"):
            setup.disable(environment)
    else:
        assert setup.enable(environment)
        assert path.is_file()


def test_from_3_15_on_there_is_a_start_file_too(tmp_path):
    """PEP 829: one entry point, pkg.mod:callable; no such Python is here to run it."""
    names = {
        version: set(setup.build_files(Environment("python", version, "/", tmp_path, False)))
        for version in ((3, 14), (3, 15))
    }
    assert names[3, 15] - names[3, 14] == {"mpsbar-agent.start"}
    files = setup.build_files(Environment("python", (3, 15), "/", tmp_path, False))
    assert files["mpsbar-agent.start"] == b"_mpsbar_start:install\n"
    assert files["mpsbar-agent.pth"].startswith(b"import ")


def test_a_hidden_pth_is_shown_again(monkeypatch, tmp_path):
    """macOS only, so the flags are a double: UF_HIDDEN is 0x8000, the others stay."""
    import stat
    from types import SimpleNamespace

    class HiddenFile:
        def stat(self):
            return SimpleNamespace(st_flags=0x8000 | 0x1)

    set_to = []
    monkeypatch.setattr(stat, "UF_HIDDEN", 0x8000, raising=False)
    monkeypatch.setattr(os, "chflags", lambda path, flags: set_to.append(flags), raising=False)
    setup._clear_hidden_flag(HiddenFile())
    assert set_to == [0x1]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_what_cannot_be_written_is_said_and_nothing_is_half_done(this_venv, monkeypatch, code):
    """A full disk, a read-only one, one of somebody else: raised where the file would be written."""
    environment, before = read_environment(this_venv.python), this_venv.tree()
    write, count = setup.replace_file, []

    def full(path, content, **options):
        count.append(path)
        if len(count) == 5:
            raise OSError(code, os.strerror(code))
        write(path, content, **options)

    monkeypatch.setattr(setup, "replace_file", full)
    with pytest.raises(UnusablePythonError, match=rf"couldn't write to .*: {os.strerror(code)}"):
        setup.enable(environment)
    assert this_venv.tree() == before


@pytest.fixture
def outdated(this_venv):
    """An enabled environment, one file of which is older than mpsbar's, and its files."""
    environment = read_environment(this_venv.python)
    setup.enable(environment)
    assert setup.read_answer(environment, dict(os.environ)) == setup.__version__
    with (this_venv.site / "_mpsbar_start.py").open("a") as file:
        file.write("# older\n")
    return environment, read_ours(this_venv.site)


def read_ours(site):
    paths = [*site.glob("*mpsbar*"), *site.glob("*mpsbar*/**/*")]
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for path in paths
        if "__pycache__" not in path.parts
    }


def test_a_refused_refresh_leaves_the_agent_that_works(this_venv, outdated):
    environment, before = outdated
    this_venv.site.chmod(0o777)
    with pytest.raises(UnusablePythonError, match="site-packages is writable by everyone"):
        setup.enable(environment)
    assert read_ours(this_venv.site) == before
    this_venv.site.chmod(0o755)
    assert setup.read_answer(environment, dict(os.environ)) == setup.__version__


@pytest.mark.parametrize("which", ["write", "rename"])
def test_a_refresh_that_fails_leaves_the_agent_that_works(this_venv, outdated, monkeypatch, which):
    """The disk is full from the fifth file on, or a file cannot be put into its place."""
    environment, before = outdated
    in_the_way = this_venv.site / "mpsbar-agent.pth"
    if which == "rename":
        in_the_way.unlink()
        in_the_way.mkdir()
        before[str(in_the_way)] = None
    write, count = setup.replace_file, []

    def full(path, content, **options):
        count.append(path)
        if which == "write" and len(count) >= 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, content, **options)

    monkeypatch.setattr(setup, "replace_file", full)
    with pytest.raises(UnusablePythonError, match="couldn't write to"):
        setup.enable(environment)
    assert read_ours(this_venv.site) == before
    monkeypatch.undo()
    if which == "rename":
        in_the_way.rmdir()
    assert setup.enable(environment)
    assert setup.read_answer(environment, dict(os.environ)) == setup.__version__


def test_noise_of_start_up_files_is_passed_over(this_venv):
    noise = "print('noise without an end', end='') or atexit.register(print, 'noise at the end')"
    (this_venv.site / "noise.pth").write_text(f"import atexit, sys; {noise}\n")
    assert read_environment(this_venv.python).version == sys.version_info[:2]


def test_a_real_torch_is_noticed(workers, this_venv):
    """The real torch of this environment, reached through a path: the copy of the agent answers."""
    shutil.rmtree(this_venv.site / "torch")
    (this_venv.site / "real.pth").write_text(f"{Path(find_spec('torch').origin).parents[1]}\n")
    environment = read_environment(this_venv.python)
    setup.enable(Environment(environment.python, environment.version, "", environment.site, False))
    env = {"MPSBAR_RUN_DIR": str(workers.run_dir), "PATH": os.environ["PATH"]}
    env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # softmps is not in the new environment
    process = subprocess.Popen(
        [this_venv.python, "-c", HELD_IMPORT], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/",
    )  # fmt: skip
    assert process.stdout.readline() == b"importing\n"
    seen = examine_process(this_computer(), process.pid, None).process
    assert (seen.is_enabled, seen.is_starting, seen.python) == (True, True, this_venv.python)
    file = this_venv.site / "_mpsbar_start.py"
    os.utime(file, (seen.started + 60, seen.started + 60))  # enabled after its start
    seen = examine_process(this_computer(), process.pid, None).process
    assert (seen.is_enabled, seen.is_starting) == (True, False)
    process.stdin.write(b"\n")
    process.stdin.flush()
    path = workers.run_dir / f"{process.pid}.sock"
    wait_for(path.exists, "agent")
    with Client(path) as client:
        # The agent answers while torch is still being imported.
        wait_for(lambda: client.ask("stats")["frameworks"], "the end of the import")
        assert client.ask("stats")["frameworks"] == {"torch": version("torch")}
    process.communicate(b"", timeout=TIMEOUT)
    assert process.returncode == 0
