"""Which Python enable, disable and probe take: named, active, or chosen from those found."""

import os
import pty
import subprocess
import sys

import interpreters
import pytest
from worker_kit import ROOT, TIMEOUT

CODE = "import sys; from mpsbar.__main__ import main; main()"


@pytest.fixture
def env(workers):
    """No environment is active, and no process of this machine is seen: a Python that somebody
    else runs just now must be neither listed nor chosen."""
    env = workers.env(
        MPSBAR_DATA_DIR=str(workers.folder / "data"), HOME=str(workers.folder), PYTHONPATH=str(ROOT),
        PATH=str(workers.folder / "bin"), TERM="xterm",
        MPSBAR_REPLAY=str(ROOT / "tests/readings/nothing-running.recording.json"),
    )  # fmt: skip
    return {k: v for k, v in env.items() if k not in ("VIRTUAL_ENV", "CONDA_PREFIX")}


@pytest.fixture
def venv(workers):
    """One with torch, as far as its files tell, found through PATH."""
    python = interpreters.need(f"{sys.version_info[0]}.{sys.version_info[1]}")
    folder = workers.folder / "venv"
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    (next(folder.glob("lib/python*/site-packages")) / "torch").mkdir()
    return folder


def run(env, *arguments):
    return subprocess.run(
        [sys.executable, "-c", CODE, *arguments],
        env=env, capture_output=True, text=True, cwd="/", timeout=TIMEOUT,
    )  # fmt: skip


def answer(env, text, *arguments):
    """On a terminal, where somebody types `text` at the question."""
    pid, terminal = pty.fork()
    if not pid:
        os.chdir("/")
        os.execve(sys.executable, [sys.executable, "-c", CODE, *arguments], env)
    shown = b""
    try:
        while chunk := os.read(terminal, 65536):
            shown += chunk
            if b"Return for none)? " in shown and text:
                os.write(terminal, text)
                text = b""
    except OSError:  # its program has ended
        pass
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code, shown.decode().replace("\r\n", "\n")


def test_without_an_active_environment_the_pythons_found_are_listed(env, venv):
    env |= {"PATH": f"{venv}/bin"}
    done = run(env, "enable")
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert lines[0] == "mpsbar: No environment is active. Pythons found with PyTorch or MLX:"
    assert lines[1] == "  1  ~/venv/bin/python3"
    assert lines[-1] == "To enable one: mpsbar enable --python PATH"
    assert not list(venv.rglob("mpsbar*"))


def test_on_a_terminal_one_is_chosen_by_its_number(env, venv):
    env |= {"PATH": f"{venv}/bin"}
    code, shown = answer(env, b"1\n", "enable")
    assert code == 0, shown
    assert "  1  ~/venv/bin/python3\n" in shown
    assert f"{venv}: enabled, agent" in shown
    code, shown = answer(env, b"1\n", "disable")
    assert (code, f"{venv}: disabled" in shown) == (0, True), shown


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (b"\n", "mpsbar: nothing was changed"),
        (b"x9\n", "mpsbar: 'x9' is not on the list: nothing was changed"),
        (b"\x04", "mpsbar: nothing was changed"),
    ],
)
def test_nothing_is_changed_unless_one_is_chosen(env, venv, typed, said):
    env |= {"PATH": f"{venv}/bin"}
    code, shown = answer(env, typed, "enable")
    assert code == 1
    assert said in shown
    assert not list(venv.rglob("mpsbar*"))


def test_an_active_environment_is_taken_and_a_missing_framework_is_told(env, workers, venv):
    next(venv.glob("lib/python*/site-packages/torch")).rmdir()
    done = run(env | {"VIRTUAL_ENV": str(venv)}, "enable")
    assert done.stdout.startswith(f"{venv}: enabled, agent")
    assert done.stderr == (
        f"mpsbar: neither PyTorch nor MLX is installed in {venv}: nothing is shown until one is\n"
    )


def test_disable_lists_what_is_enabled(env, venv):
    nothing = run(env, "disable")
    assert nothing.stderr == "mpsbar: No environment is active, and none is enabled\n"
    run(env, "enable", "--python", str(venv / "bin/python"))
    done = run(env, "disable")
    assert done.stderr.splitlines() == [
        "mpsbar: No environment is active. Enabled:",
        "  1  ~/venv/bin/python",
        "To disable one: mpsbar disable --python PATH",
    ]


def test_probe_takes_the_active_environment_first_and_says_so(env, workers):
    prefix = sys.prefix  # the environment of the tests has torch
    done = run(env | {"VIRTUAL_ENV": prefix}, "probe", "--device", "cpu", "--json")
    assert done.stderr == (
        f"mpsbar: used {prefix}/bin/python (the active environment's); --python PATH for another\n"
    )


def test_in_the_app_the_python_must_be_named(monkeypatch):
    """The app's own is never meant."""
    from mpsbar.cli import python_choice
    from mpsbar.core.errors import UserError

    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "frozen", "macosx_app", raising=False)
    monkeypatch.setenv("MPSBAR_REPLAY", str(ROOT / "tests/readings/nothing-running.recording.json"))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        UserError, match="No environment is active, and no Python with PyTorch or MLX"
    ):
        python_choice.choose_for_enable(None)
    monkeypatch.setenv("VIRTUAL_ENV", "/v")
    assert python_choice.choose_for_enable(None) == "/v/bin/python"
