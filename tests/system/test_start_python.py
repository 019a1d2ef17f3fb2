"""No Python runs that another user can change, whichever way its path came in."""

import ast
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from functools import partial

import psutil
import pytest
from cli.command_kit import NO_ACTIVE_PYTHON, run_command
from worker_kit import ROOT, TIMEOUT, wait_for

from mpsbar.core.snapshot import Snapshot, Worker
from mpsbar.doctor.pythons import find_pythons, inspect_python
from mpsbar.dtypes.runner import ProbeRunner
from mpsbar.system.ownership import NotTrustedError
from mpsbar.system.start_python import (
    end_with_children,
    find_danger_of,
    start_python,
    why_not_run,
)
from mpsbar.workers.enable import connect, read_answer
from mpsbar.workers.environments import Environment, UnusablePythonError, read_environment

EVE = 54321  # a number without an account
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


@pytest.fixture
def trap(tmp_path):
    """A program named python that leaves a mark wherever it is run; in a folder of its own."""
    tmp_path.chmod(0o755)
    folder = tmp_path / "env" / "bin"
    folder.mkdir(parents=True)
    python, mark = folder / "python", tmp_path / "it ran"
    python.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(mark))}\n")
    python.chmod(0o755)
    return python, mark


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A real venv, which no test changes for longer than it runs."""
    folder = tmp_path_factory.mktemp("made") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder


def ask(python):
    with pytest.raises(UnusablePythonError) as refusal:
        read_environment(python)
    return str(refusal.value)


def verify_answer(python):
    with pytest.raises(UnusablePythonError) as refusal:
        read_answer(Environment(python, (3, 11), "/", ROOT, False), dict(os.environ))
    return str(refusal.value)


def inspect_unsafe(python):
    device = inspect_python(python)
    assert device.ended == "unsafe"
    return device.error


def probe(python):
    probed = ProbeRunner([python]).run()
    assert probed.ended == "unsafe"
    return probed.error


def click_connect(python):
    outcome = connect(python)
    assert outcome.state == "refused"
    return outcome.error


REFUSALS = [ask, verify_answer, inspect_unsafe, probe, click_connect]


@pytest.mark.parametrize("refuse", REFUSALS)
def test_one_that_everybody_can_exchange_is_not_run(trap, refuse):
    python, mark = trap
    python.parent.chmod(0o777)
    folder = python.parent
    assert f"{folder} is writable by everyone, so other users could run code as you" in refuse(
        str(python)
    )
    assert f"chmod go-w {folder}, or start your script with mpsbar run" in refuse(str(python))
    assert not mark.exists()


@needs_root
@pytest.mark.parametrize("refuse", REFUSALS)
def test_one_of_another_user_is_not_run_as_root(trap, refuse):
    python, mark = trap
    os.chown(python, EVE, EVE)
    words = f"{python} belongs to another user ({EVE}), so other users could run code as you"
    assert refuse(str(python)).endswith(f"{words}; run mpsbar as {EVE} instead")
    assert not mark.exists()


def test_the_trap_works(trap):
    python, mark = trap
    assert inspect_python(str(python)).ended == "not_python"
    assert mark.exists()


@needs_root
def test_the_doctor_does_not_run_what_an_agent_or_a_file_names(trap):
    python, mark = trap
    os.chown(python, EVE, EVE)
    worker = Worker(7, "w", "live", 0.0, executable=str(python), frameworks={"torch": "2.13"})
    for pythons in (
        find_pythons(Snapshot(0.0, workers=(worker,)), ())[:1],
        find_pythons(Snapshot(0.0), [str(python)])[:1],
    ):
        assert pythons == [str(python)]
        assert inspect_python(*pythons).ended == "unsafe"
    assert not mark.exists()


@needs_root
def test_the_probe_goes_on_to_the_next_and_tells_of_the_first(trap, tmp_path):
    python, mark = trap
    os.chown(python, EVE, EVE)
    own = tmp_path / "own" / "bin"
    own.mkdir(parents=True)
    (own / "python").write_text(f"#!/bin/sh\ntouch '{own / 'it ran'}'\nexit 3\n")
    (own / "python").chmod(0o755)
    probed = ProbeRunner([str(python), str(own / "python")]).run()
    assert (own / "it ran").exists()
    assert (probed.ended, probed.python) == ("unsafe", str(python))
    assert not mark.exists()


@pytest.fixture
def mpsbar(workers):
    return partial(run_command, workers, **NO_ACTIVE_PYTHON)


@needs_root
@pytest.mark.parametrize("command", ["enable", "disable", "doctor", "probe"])
def test_a_python_that_was_named_is_refused_with_a_sentence(mpsbar, trap, command):
    python, mark = trap
    os.chown(python.parent, EVE, EVE)
    done = mpsbar(command, "--python", str(python))
    words = (
        f"{python.parent} belongs to another user ({EVE}), so other users could run code as you; "
    )
    assert f"{words}run mpsbar as {EVE} instead" in done.stdout + done.stderr
    assert "not run: " in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert (done.returncode, mark.exists()) == (1, False)


@needs_root
def test_what_enabled_json_names_is_not_run(mpsbar, trap, workers):
    python, mark = trap
    os.chown(python, EVE, EVE)
    data = workers.folder / "data"
    data.mkdir()
    (data / "enabled.json").write_text(json.dumps({"schema": 1, "pythons": [str(python)]}))
    listed = mpsbar("enable", "--list")
    assert listed.stdout.startswith(
        f"{python}  unusable: {python} was not run: {python} belongs to"
    )
    assert f"{python} belongs to another user ({EVE})" in mpsbar("disable", "--all").stderr
    assert not mark.exists()


def judge(venv):
    danger = find_danger_of(str(venv / "bin/python"))
    return None if danger is None else danger.path


def test_a_real_venv_is_safe(made):
    assert why_not_run(str(made / "bin/python")) is None
    assert judge(made) is None


@pytest.mark.parametrize(
    "part",
    ["", "bin", "pyvenv.cfg", "lib", "lib/VERSION", "lib/VERSION/site-packages"],
)  # fmt: skip
def test_everything_that_decides_what_a_venv_runs_is_judged(made, part):
    part = made / part.replace("VERSION", f"python3.{sys.version_info[1]}")
    mode = part.stat().st_mode
    part.chmod(mode | 0o002)
    try:
        assert judge(made) == str(part)
    finally:
        part.chmod(mode)


@pytest.mark.parametrize("name", ["x.pth", "x.start", "sitecustomize.py", "usercustomize.py"])
def test_files_that_every_start_runs_are_judged(made, name):
    file = next(made.glob("lib/python*/site-packages")) / name
    file.touch()
    try:
        assert judge(made) is None
        file.chmod(0o666)
        assert judge(made) == str(file)
    finally:
        file.unlink()


@pytest.fixture
def packages(made):
    """Its site-packages, empty again afterwards."""
    folder = next(made.glob("lib/python*/site-packages"))
    yield folder
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def run_module(venv, name):
    """What a module of the venv prints, started as mpsbar starts it; None if it was refused."""
    try:
        process = start_python(str(venv / "bin/python"), ["-c", f"import {name}"], os.environ)
    except NotTrustedError:
        return None
    with process:
        return process.communicate(timeout=TIMEOUT)[0].decode().strip()


@needs_root
@pytest.mark.parametrize("name", ["eves", "eves.py", "sitecustomize.py"])
def test_a_package_of_another_user_in_site_packages_is_not_run_as_root(made, packages, name):
    path = packages / name
    code = path if name.endswith(".py") else path / "__init__.py"
    code.parent.mkdir(exist_ok=True)
    code.write_text("print('it ran')")
    assert run_module(made, path.stem) == "it ran"
    os.chown(path, EVE, EVE)
    assert judge(made) == str(path)
    assert run_module(made, path.stem) is None


@needs_root
def test_a_pth_of_roots_that_names_the_folder_of_another_user_is_not_followed(
    made, packages, tmp_path
):
    tmp_path.chmod(0o755)
    eves = tmp_path / "eves folder"
    eves.mkdir()
    (eves / "eves.py").write_text("print('it ran')")
    (packages / "x.pth").write_text(f"# import\nimport sys\n\n{eves}\n")
    assert run_module(made, "eves") == "it ran"
    for path in (eves / "eves.py", eves):
        os.chown(path, EVE, EVE)
        assert judge(made) == str(path)
        assert run_module(made, "eves") is None
        os.chown(path, 0, 0)
    assert judge(made) is None
    (packages / "x.pth").write_text(os.path.relpath(eves, packages))
    eves.chmod(0o777)
    assert judge(made) == str(eves)


@needs_root
def test_a_folder_that_a_pth_names_may_be_missing_but_not_be_made_by_others(
    made, packages, tmp_path
):
    tmp_path.chmod(0o755)
    (packages / "x.pth").write_text(f"{tmp_path}/none")
    assert judge(made) is None
    tmp_path.chmod(0o1777)
    assert judge(made) == str(tmp_path)


def test_files_that_nothing_imports_do_not_count(made, packages):
    """conda's packages bring some that everybody can write (conda#8200)."""
    (packages / "pip-10.0.1-py3.7.egg-info").mkdir()
    for name in ("README.txt", "pip-10.0.1-py3.7.egg-info/PKG-INFO"):
        (packages / name).touch()
        (packages / name).chmod(0o666)
    assert judge(made) is None


def test_site_packages_that_lie_elsewhere_are_judged(tmp_path, trap):
    python, _ = trap
    library = python.parent.parent / "lib/python3.11"
    (library).mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (library / "site-packages").symlink_to(elsewhere)
    assert judge(python.parent.parent) is None
    elsewhere.chmod(0o777)
    assert judge(python.parent.parent) == str(elsewhere)


def test_the_python_that_a_venv_was_made_with_is_judged(tmp_path, trap):
    """Its standard library is what runs, also where bin/python is a copy and no link."""
    python, _ = trap
    base = tmp_path / "base"
    (base / "bin").mkdir(parents=True)
    (base / "lib/python3.11").mkdir(parents=True)
    settings = python.parent.parent / "pyvenv.cfg"
    settings.write_text(f"include-system-site-packages = false\nHome = {base}/bin \nversion = 3\n")
    assert judge(python.parent.parent) is None
    (base / "lib/python3.11/lib-dynload").mkdir()
    for name in ("os.py", "lib-dynload/_json.so", "../python311.zip"):
        (base / "lib/python3.11" / name).touch()
    for part in (
        "lib/python3.11/lib-dynload/_json.so", "lib/python3.11/os.py", "lib/python311.zip",
        "lib/python3.11", "bin", "",
    ):  # fmt: skip
        (base / part).chmod(0o777)
        assert judge(python.parent.parent) == str(base / part)
        (base / part).chmod(0o755)


def test_each_link_to_a_python_is_judged_with_what_lies_beside_it(tmp_path, trap):
    python, _ = trap
    near = tmp_path / "near"
    (near / "bin").mkdir(parents=True)
    (near / "bin/python").symlink_to(python)
    assert judge(near) is None
    for part in (near, near / "bin", python.parent, python.parent.parent):
        part.chmod(0o777)
        assert judge(near) == str(part)
        part.chmod(0o755)


def test_a_sticky_folder_may_lie_above_an_environment_but_not_be_one(trap):
    """In /tmp/bin/python, anybody could add /tmp/pyvenv.cfg, which names another library."""
    python, _ = trap
    prefix = python.parent.parent
    prefix.parent.chmod(0o1777)
    assert judge(prefix) is None
    prefix.chmod(0o1777)
    assert judge(prefix) == str(prefix)


def test_a_pipe_in_the_place_of_what_is_read_does_not_make_us_wait(trap):
    python, _ = trap
    prefix = python.parent.parent
    os.mkfifo(prefix / "pyvenv.cfg")
    (prefix / "pyvenv.cfg").chmod(0o666)
    assert judge(prefix) == str(prefix / "pyvenv.cfg")
    (prefix / "pyvenv.cfg").chmod(0o600)
    assert judge(prefix) is None


def run(arguments, environ):
    with start_python(sys.executable, arguments, environ) as process:
        return process.communicate(timeout=TIMEOUT)[0].decode().strip()


def test_modules_in_the_present_folder_are_not_imported(tmp_path, monkeypatch):
    """Somebody may type mpsbar enable in /tmp, where another user has put a module."""
    (tmp_path / "colorsys.py").write_text("print('it ran')")
    monkeypatch.chdir(tmp_path)
    assert run(["-c", "import colorsys; print('well')"], os.environ) == "well"


def test_packages_in_the_home_folder_of_another_user_are_left_out(tmp_path):
    """sudo may keep $HOME."""
    code = "import sys; print(sys.flags.no_user_site)"
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONNOUSERSITE"}
    assert run(["-c", code], environ | {"HOME": str(tmp_path)}) == "0"
    tmp_path.chmod(0o777)
    assert run(["-c", code], environ | {"HOME": str(tmp_path)}) == "1"
    assert run(["-c", code], environ | {"PYTHONUSERBASE": str(tmp_path)}) == "1"
    tmp_path.chmod(0o755)
    for place in (
        ".local/lib/python3.11/site-packages",
        "Library/Python/3.11/lib/python/site-packages",
    ):
        module = tmp_path / place / "x.py"
        module.parent.mkdir(parents=True)
        module.touch()
        module.chmod(0o666)
        assert run(["-c", code], environ | {"HOME": str(tmp_path)}) == "1"
        module.unlink()
    assert run(["-c", code], environ | {"HOME": str(tmp_path)}) == "0"
    (tmp_path / "circle").symlink_to("circle")
    assert run(["-c", code], environ | {"HOME": str(tmp_path / "circle")}) == "1"


def test_one_is_ended_with_what_it_started_and_what_it_wrote_to_is_closed():
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\ntime.sleep(600)"
    )
    process = start_python(sys.executable, ["-c", code], os.environ, stderr=subprocess.DEVNULL)
    child = psutil.Process(int(process.stdout.readline()))
    assert end_with_children(process) == -signal.SIGKILL
    assert process.stdout.closed
    wait_for(lambda: has_ended(child), "the end of its child")


def has_ended(process):
    """Or waits for its parent, which may be the system's first process by now."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_name_is_looked_for_as_the_shell_does_it(tmp_path, trap, monkeypatch):
    python, mark = trap
    monkeypatch.setenv("PATH", f"{python.parent}:{os.environ['PATH']}")
    with start_python("python", [], os.environ) as process:
        process.communicate(timeout=TIMEOUT)
    assert mark.exists()
    python.parent.chmod(0o777)
    with pytest.raises(NotTrustedError):
        start_python("python", [], os.environ)


# Who starts programs, and why their paths need no look at owners.
STARTS = {
    "system/start_python.py": "which judges them",
    "system/macos/gpu.py": "/usr/sbin/ioreg",
    "system/installed_pythons.py": "/usr/bin/xcode-select",
    "desktop/launch_agent.py": "/bin/launchctl",
    "desktop/login_macos.py": "/usr/bin/open",
    "desktop/programs.py": "found on this user's PATH, as by the shell; /usr/bin/osascript",
    "fleet/questions.py": "ssh, which asks a person on the terminal",
    "fleet/ssh.py": "ssh, found on this user's PATH, as by the shell",
    "cli/demo.py": "the Python that runs mpsbar already",
    "cli/run.py": "what this user typed",
    "cli/config.py": "the editor that this user has named",
    "system/foreground.py": "the same, for mpsbar run --summary",
    "agent/notebook.py": "the kernel's own Python, or mpsbar on this user's PATH: %mpsbar why",
}


def test_nobody_else_starts_a_program():
    found = set()
    for path in sorted((ROOT / "mpsbar").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(
                ("subprocess.run", "subprocess.Popen", "subprocess.c", "os.exec", "os.spawn", "os.posix_spawn", "os.system", "os.popen")
            ):  # fmt: skip
                found.add(path.relative_to(ROOT / "mpsbar").as_posix())
    assert found == set(STARTS)
