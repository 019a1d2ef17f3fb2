"""The man page and the completions: rendered and loaded by the real programs, and installed where those look."""

import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import time

import pytest
from worker_kit import ROOT, TIMEOUT

from mpsbar.cli.main import COMMANDS
from mpsbar.desktop.command_line_link import SHELL_FILES

FOLDER = ROOT / "packaging/shell"
PAGE = FOLDER / "mpsbar.1"
# What is typed, and what must be offered for it.
ASKED = {
    "mpsbar sta": ["status"],
    "mpsbar free --when": ["--when-possible"],
    "mpsbar login o": ["off", "on"],
    "mpsbar probe --against packaging/shell/_mp": ["packaging/shell/_mpsbar"],
}
BASH = """
source packaging/shell/mpsbar.bash
ask() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
  _shtab_mpsbar mpsbar "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  printf '%s\\n' "${COMPREPLY[@]}"
}
"""


def need(program):
    if shutil.which(program) is None:
        pytest.skip(f"no {program}: apt-get install {program}")


def run(*command, **options):
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=TIMEOUT, **options
    )


@pytest.mark.parametrize("line", ASKED)
def test_bash_completes(line):
    need("bash")
    done = run("bash", "--norc", "-c", f"{BASH}ask {line}")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.split()) == ASKED[line]
    complete = run("bash", "--norc", "-c", "source packaging/shell/mpsbar.bash; complete -p mpsbar")
    assert complete.stdout.endswith("-F _shtab_mpsbar mpsbar\n")


@pytest.mark.parametrize("line", ASKED)
def test_fish_completes(line, tmp_path):
    need("fish")
    code = f"source packaging/shell/mpsbar.fish; complete -C {shlex.quote(line)}"
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    done = run("fish", "--no-config", "-c", code, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(row.split("\t")[0] for row in done.stdout.splitlines()) == ASKED[line]


class Zsh:
    """An interactive zsh on a terminal of its own: it completes nowhere else."""

    def __init__(self, home):
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.chdir(ROOT)
            env = {"HOME": str(home), "TERM": "dumb", "PS1": "READY> ", "PATH": os.environ["PATH"]}
            os.execvpe("zsh", ["zsh", "-f", "-i"], env)
        self.read_until("READY> ")
        load = f"fpath=({FOLDER} $fpath); autoload -U compinit; compinit -u -D; echo LOAD''ED\n"
        os.write(self.terminal, load.encode())
        self.read_until("LOADED")

    def read_until(self, *texts):
        shown, end = "", time.monotonic() + TIMEOUT
        while not all(text in shown for text in texts):
            assert time.monotonic() < end, shown
            shown += os.read(self.terminal, 65536).decode("utf-8", "replace")
        return shown

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


@pytest.mark.parametrize("line", ASKED)
def test_zsh_completes(line, tmp_path):
    need("zsh")
    zsh = Zsh(tmp_path)
    try:
        os.write(zsh.terminal, f"{line}\t".encode())
        zsh.read_until(*ASKED[line])
    finally:
        zsh.end()


def test_man_shows_every_command_without_a_warning():
    need("man")
    env = {
        "PATH": os.environ["PATH"],
        "LC_ALL": "C.UTF-8",
        "MANWIDTH": "80",
        "MAN_KEEP_FORMATTING": "",
    }
    done = run("man", "--warnings", "-l", str(PAGE), env=env)
    assert (done.returncode, done.stderr) == (0, "")
    text = re.sub(".\b", "", done.stdout)
    for command, summary in COMMANDS.items():
        assert re.search(
            rf"^   mpsbar {command}\n       {re.escape(summary)}$", text, re.MULTILINE
        ), command
    assert "mpsbar status --json | jq '.workers[].held'" in text  # as it can be copied
    assert max(map(len, text.splitlines())) <= 80


def test_the_man_of_a_mac_finds_no_fault():
    """That is mandoc, since macOS 13. The page has no date: it is written anew whenever the help changes."""
    need("mandoc")
    done = run("mandoc", "-Tlint", "-W", "warning", str(PAGE))
    assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []


def test_all_ways_to_install_have_them():
    setup = (ROOT / "setup.py").read_text()
    formula = (ROOT / "packaging/homebrew/mpsbar.rb").read_text()
    names = sorted(file.name for file in FOLDER.iterdir())
    assert names == sorted(name.rpartition("/")[2] for name in SHELL_FILES)
    for place in SHELL_FILES:
        folder, _, name = place.rpartition("/")
        assert f'("{folder}", ["packaging/shell/{name}"])' in setup
        assert f'"packaging/shell/{name}"' in formula
