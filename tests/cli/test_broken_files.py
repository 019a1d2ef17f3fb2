"""Pipes and nonsense in the place of mpsbar's own files: no command waits or shows a traceback."""

import os
import sys

import pytest
from worker_kit import ROOT

from mpsbar.agent import __version__

DATA = (
    "enabled.json", "history.sqlite", "history.sqlite-journal", "report.html", "alerts.json", "self-test.json",
    "status-line.json", "own-use.json", "auto-free.json", "icon.json", "menubar.lock", "recorder.lock", "auto-free.lock",
    f"agent-{__version__}/__init__.py", "probes/cpu.json",
)  # fmt: skip
KINDS = {
    "pipe": os.mkfifo,  # nobody writes to it: whoever opens it to read waits for ever
    "deep": lambda path: path.write_text("[" * 200_000),
    "bytes": lambda path: path.write_bytes(b"\xff\xfe\x00" * 1000),
}
COMMANDS = (
    "status", "status --format {held}", "why", "report", "doctor --python /nowhere", "enable --list",
    "disable --all", "config print", "config validate", "free --all",
    f"run {sys.executable} -c pass",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_waits_for_it(workers, mpsbar, light_torch, tmp_path, kind, command):
    """`mpsbar` ends it after two minutes: then it has waited."""
    folders = {name: tmp_path / name for name in ("config", "log", "home")}
    files = [workers.folder / "data" / name for name in DATA]
    files += [folders["config"] / "settings.toml", folders["log"] / "mpsbar.log"]
    files += [folders["home"] / name for name in (".conda/environments.txt", KERNEL)]
    for file in files:
        file.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        KINDS[kind](file)
    done = mpsbar(
        *command.split(), MPSBAR_CONFIG_DIR=str(folders["config"]), PYTHONPATH=f"{light_torch}:{ROOT}",
        MPSBAR_LOG_DIR=str(folders["log"]), HOME=str(folders["home"]), PATH=str(tmp_path),
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "internal error" not in done.stdout + done.stderr


KERNEL = ".local/share/jupyter/kernels/mine/kernel.json"
