"""The command line as a whole: help, mistakes, exit codes; no traceback, no torch."""

import json
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module

import pytest
from worker_kit import ROOT

from mpsbar import __version__
from mpsbar.cli.main import COMMANDS, build_parser
from mpsbar.ui.text.cells import width


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["free"], "mpsbar free: give PIDs or names of connected processes, or --all (see mpsbar free --help)"),
        (["free", "--all", "7"], "mpsbar free: either PIDs or names, or --all, not both (see mpsbar free --help)"),
        (["free", " "], "mpsbar free: argument PID|NAME: not a process ID or name: '' (see mpsbar free --help)"),
        (["free", "0"], "mpsbar free: argument PID|NAME: not a process ID: '0' (see mpsbar free --help)"),
        (["free", "9" * 99], f"mpsbar free: argument PID|NAME: not a process ID: '{'9' * 99}' (see mpsbar free --help)"),
        (
            ["free", "7", "--timeout", "nan"],
            "mpsbar free: argument --timeout: not a number of seconds between 0 and 3600: 'nan'"
            " (see mpsbar free --help)",
        ),
        (["wat"], "mpsbar: unknown command 'wat' (see mpsbar --help)"),
        (["fre", "7"], "mpsbar: unknown command 'fre'; did you mean 'free'? (see mpsbar --help)"),
        (["help", "stat"], "mpsbar: unknown command 'stat'; did you mean 'status'? (see mpsbar --help)"),
        (["status", "--nope"], "mpsbar: unrecognized arguments: --nope (see mpsbar --help)"),
    ],
)  # fmt: skip
def test_bad_arguments_are_one_clear_line_and_exit_2(mpsbar, arguments, line):
    done = mpsbar(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


EVERY_HELP = """
import contextlib, io, json
from mpsbar.cli.main import COMMANDS, run
found = {}
for command in COMMANDS:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try: code = run([command, "--help"])
        except SystemExit as end: code = end.code
    found[command] = (code, out.getvalue())
print(json.dumps(found))
"""


def read_every_help(**extra):
    """The exit code and the help of each command, by one Python."""
    env = os.environ | {"COLUMNS": "80", "PYTHONUTF8": "1"} | extra
    done = subprocess.run(
        [sys.executable, "-c", EVERY_HELP], env=env, capture_output=True, text=True, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def helps():
    return read_every_help()


@pytest.fixture(scope="module")
def korean_helps():
    return read_every_help(MPSBAR_LANG="ko")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples_that_it_accepts(helps, command):
    code, text = helps[command]
    assert code == 0
    assert text.startswith(f"usage: mpsbar {command} [-h]")
    assert max(map(len, text.splitlines())) < 80
    examples = import_module(f"mpsbar.cli.{command}").EXAMPLES
    assert [line.strip() for line in text.splitlines()[-len(examples) :]] == list(examples)
    for example in examples:
        if example.startswith(f"mpsbar {command}"):
            arguments = shlex.split(re.split("[|>&]", example)[0])[1:]
            assert build_parser(arguments).parse_args(arguments).command == command


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_the_window_in_korean_too(korean_helps, command):
    lines = korean_helps[command][1].splitlines()
    assert lines[0].startswith("사용법: mpsbar")
    assert max(map(width, lines)) < 80
    usage = lines[1 : lines.index("")]
    assert {len(line) - len(line.lstrip()) for line in usage} <= {
        width(f"사용법: mpsbar {command} ")
    }


def test_help_and_version_in_their_other_forms(mpsbar):
    assert mpsbar("help").stdout == mpsbar("--help").stdout
    assert mpsbar("help", "free").stdout == mpsbar("free", "--help").stdout
    assert mpsbar("-V").stdout == mpsbar("--version").stdout == f"mpsbar {__version__}\n"


def test_help_lists_every_command_and_imports_none(workers):
    code = (
        "import atexit, sys\nfrom mpsbar.cli.main import run\n"
        "atexit.register(lambda: print(*sorted(m for m in sys.modules if m.startswith('mpsbar.'))))\n"
        "run(['--help'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=workers.env(), capture_output=True, text=True, cwd=ROOT
    )
    *shown, imported = done.stdout.splitlines()
    listed = [line[9:].split()[0] for line in shown if re.match("[A-Z ][a-z ]{8}[a-z]+  ", line)]
    assert listed == list(COMMANDS)
    assert len(shown) < 24  # a screen
    assert max(map(len, shown)) <= 80
    assert not re.search(r"mpsbar\.(monitor|system|workers|ui|dtypes|history)\b", imported)


def test_help_of_a_command_imports_no_feature(workers):
    """Help is answered at once: a command's feature is imported only when the command runs."""
    code = (
        "import sys\nfrom mpsbar.cli.main import COMMANDS, run\n"
        "for command in COMMANDS:\n"
        "    try: run([command, '--help'])\n"
        "    except SystemExit: pass\n"
        "    print('imported', command, *sorted({m.split('.')[1] for m in sys.modules if m.startswith('mpsbar.')}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=workers.env(), capture_output=True, text=True, cwd=ROOT
    )
    lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("imported")]
    assert [command for command, *_ in lines] == list(COMMANDS)
    for command, *folders in lines:
        assert set(folders) <= {"agent", "cli", "core", "language"}, command


def test_every_file_of_the_folder_is_a_command_or_shared():
    files = {path.stem for path in (ROOT / "mpsbar/cli").glob("*.py")}
    shared = {
        "__init__",
        "main",
        "arguments",
        "output",
        "start",
        "on_hosts",
        "run_summary",
        "run_usage",
        "ended_runs",
        "targets",
        "follow",
        "deep_probe",
        "python_choice",
    }
    assert files - set(COMMANDS) == shared


def test_no_traceback_reaches_a_user(mpsbar, workers, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import mpsbar.monitor as m\n"
        "def tick(self): raise ValueError('planted')\n"
        "m.Monitor.tick = tick\n"
    )
    done = mpsbar("status", PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "mpsbar: internal error: ValueError: planted (MPSBAR_DEBUG=1 shows where)\n"
    )
    shown = mpsbar("status", PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}", MPSBAR_DEBUG="1")
    assert "Traceback" in shown.stderr


def test_a_command_that_cannot_be_imported_is_one_line(mpsbar, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['mpsbar.monitor'] = None\n")
    done = mpsbar("status", PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("mpsbar: internal error: ModuleNotFoundError: ")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_goes_away_is_no_tragedy(workers):
    command = f"{sys.executable} -m mpsbar status --json | true"
    done = subprocess.run(
        command, shell=True, env=workers.env(), capture_output=True, text=True, cwd=ROOT
    )
    assert done.stderr == ""


def test_the_monitor_never_imports_torch_or_mlx(workers):
    code = (
        "import sys\nfrom mpsbar.cli.main import run\n"
        "run(['status']); run(['free', '--all'])\n"
        "import mpsbar.cli.demo\n"
        "print([m for m in ('torch', 'mlx', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=workers.env(), capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.endswith("[]\n"), done.stderr
