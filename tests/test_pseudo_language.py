"""Everything is shown in a made-up language: what is still in plain English bypasses `_()`; what programs read is English.

The screens are those of the recorded machine and of the samples whose English texts are stored in tests/golden.
"""

import json
import os
import re
import subprocess
import sys

import pytest
from changed_package import ChangedPackage
from pseudo_language import LANGUAGE, ROOT, is_disguised, reveal, write_catalogue

from mpsbar.cli.main import COMMANDS

# Drawn in one Python; a name for each, and what a person sees.
SCREENS = """
import asyncio, json
from dataclasses import replace
shown = {}

from ui.text.scene_kit import SCENE
from ui.menu_kit import APP
from mpsbar.core.settings import Settings
from mpsbar.core.actions import Freed
from mpsbar.ui.menu import build_menu
from mpsbar.ui.rows import Row, UiState
from mpsbar.ui.status_table import render_status
from mpsbar.ui.columns import explain_counters
shown["status"] = render_status(SCENE) + "\\n" + "\\n".join(explain_counters())

def list_rows(rows):
    for row in rows:
        yield "\\n".join(filter(None, (row.line, row.tooltip, row.end_note)))
        yield from list_rows(row.children)

freed = {4711: Freed(4711, "train.py", "done", 3 << 30, 0.04)}
for state in (APP, UiState()):
    menu = build_menu(replace(SCENE, freed=tuple(freed.values())) if isinstance(SCENE.freed, tuple) else SCENE, state)
    shown[f"menu of {'the app' if state.is_clickable else 'the command'}"] = "\\n".join(
        [menu.bar.label, menu.bar.tooltip, *list_rows(menu.rows)]
    )

from ui.text.test_alerts import REASONS
from mpsbar.ui.text import alerts, endings
from mpsbar.core.snapshot import Snapshot
shown["findings"] = "\\n".join(alerts.say_reason(case[0] if isinstance(case, tuple) else case.values[0], "train.py") for case in REASONS)

from probe_samples import BAD, TERMINAL
from probe_samples import make_probe
from mpsbar.dtypes.table import render_probe
from mpsbar.dtypes.verdicts import find_changes
shown["probe"] = render_probe(BAD, TERMINAL, "/data/probes/mps.json", find_changes(make_probe(torch="2.12.0"), BAD))

from doctor.test_render import DOCTOR_REPORT
from mpsbar.doctor.render import render_doctor
shown["doctor"] = render_doctor(DOCTOR_REPORT, "/Users/me")

from report_kit import make_ends, make_page, read_text
from mpsbar.cli.ended_runs import render
shown["report"] = read_text(make_page())
shown["why"] = "\\n".join(map(render, make_ends()))

from dtypes.compare.test_text import DATA, EVERY_TEXT
from mpsbar.dtypes.compare import render as compare_render, text as compare_text
from mpsbar.language import _, ngettext
from mpsbar.ui.text.cells import width
compare_text.use_language(_, ngettext, width)
shown["compare"] = "\\n".join(map(compare_render.render_text, (DATA, EVERY_TEXT)))
shown["compare in a notebook"] = compare_render.render_html(EVERY_TEXT)

from mpsbar.agent import notebook, notebook_card, notebook_text, wording
number = dict.fromkeys(("allocated", "reserved", "driver", "peak", "budget"), 1 << 20)
backends = {"mps": {"state": "in use", **number}, "cuda": {"state": "not known"}, "mlx": {"state": "not initialised"}}
bar = {"name": "", "done": 3, "total": 9, "unit": "it", "rate": 2.0, "seconds_left": 90.0, "inner": None, "steps": 7, "steps_per_second": None}
freed = {"state": "done", "freed": 1, "seconds": 0.1, "backends": {}, "collected": False, "gui_toolkit": "Tk", "not_known": ["mps"]}
census = {"state": "done", "groups": [], "others": {"bytes": 1}, "not_visible": {"mps": 1}, "cut_short": False}
why = [{"code": code, "where": "a.py:1"} for code in (*wording._REASONS, "other")]
shown["notebook"] = "\\n".join([
    notebook_text.describe_memory(backends), notebook_text.describe_memory({}), notebook_text.describe_progress(bar),
    notebook_text.describe_progress({"steps": 7, "inner": None, "steps_per_second": None}),
    notebook_card.render_card(backends, bar), *map(wording.duration, (0.1, 5, 200, 9000)),
    notebook_text.say_freed(freed, 5), notebook_text.say_freed({**freed, "backends": {"mps": {"error": "1"}}}, 0),
    *(notebook_text.say_freed({**freed, "state": "busy", "reason": why[0], "freed": n}, 0) for n in (0, 5)),
    *map(notebook_text.say_why, why), notebook_card.describe_tensors(census),
    notebook_card.describe_tensors({**census, "cut_short": True}),
    notebook_card.describe_tensors({**census, "others": {"bytes": 0}, "not_visible": {}}),
    notebook_card.describe_tensors({"state": "busy", "reason": why[0]}), notebook_card.describe_tensors({"state": "failed"}),
    notebook_card.describe_cell((1, 1), (2, 2), 1), notebook_card.describe_cell((1, 1), (2, 1), 1),
    notebook_card.describe_cell((None, None), (None, None), 1),
])

from ui.fake_monitor import FakeMonitor
from ui.terminal.top_kit import build_series
from ui.terminal_kit import play

async def look_around(p):
    shown["top"] = p.screen()
    await p.press("question_mark")
    shown["keys of top"] = p.screen()
    await p.press("escape", "enter")
    shown["detail in top"] = p.screen()
    await p.press("escape", "s")
    shown["question in top"] = p.screen()

play(FakeMonitor(list(build_series())[-1]), look_around, (150, 60))
print(json.dumps(shown))
"""
# Names, units and codes: the same in every language.
NAMES = {
    "Apple", "Max", "Pro", "PyTorch", "MLX", "MPS", "Metal", "torch", "pytorch", "mps", "mlx", "cuda", "cpu", "Python", "macOS",
    "CPU", "GPU", "PID", "RSS", "mpsbar", "kB", "MB", "GB", "TB", "ms", "Esc", "bool", "SIGABRT", "TypeError",
}  # fmt: skip
# What the samples hold: names and commands of processes, errors of torch, what a check measured (it is kept in a file).
SAMPLES = [
    "notebook kernel", "child process", "process 4716", "uvicorn app:app", "Paint", "loader", "mpsbar enable", "mpsbar run",
    "of_a_later\ufffdversion", "python train.py", "│on train.py", "Draw", "Things", "gpu: IOKit said no", "dlopen",
    "the parameter did not change", "is 3.0, not 2.0", "off by 0.3", "MPS has no float64", "largest error: 0.3",
    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please use float32 instead.",
    "The operator 'aten::cumsum' is not currently supported on the MPS backend and will fall back to run on the CPU.",
    'RuntimeError: "addmm" not implemented',
    "Trying to convert Float8_e4m3fn to the MPS backend but it does not have support for that dtype.",
    "ValueError",
]  # fmt: skip
OPERATIONS = frozenset([
    "create", "copy", "add", "matmul", "linear", "softmax", "attention", "sum", "cumsum", "argmax", "index", "sort",
    "embedding", "backward", "adam", "autocast", "mm",
])  # fmt: skip
# Of a comparison: the sample's modules and what torch and NumPy call a value.
COMPARED = frozenset(
    ["Net", "Linear", "head", "tail", "norm", "cumsum", "mm", "autocast", "NaN", "Inf"]
)
HELP_NAMES = frozenset()
HOSTILE_WORDS = {"img", "src", "onerror", "alert", "owned", "gnp", "exe"}
# What a person types or a program is called: paths, options, files, modules, settings, dtypes.
TYPED = re.compile(
    r"""~?[\w.@+-]*/[\w.@/+~…-]*       # a path
    | --?[A-Za-z][\w-]*(=\S+)?         # an option
    | \b[\w-]+\.[\w.]+(\(\))?          # train.py, torch.float16, 2.13.0
    | \b[A-Za-z]+_\w+\b                # PYTORCH_ENABLE_MPS_FALLBACK
    | \b\w*\d\w*\b                     # float16, x86_64
    | \baten::\w+ | \{\w+\}
    """,
    re.VERBOSE,
)
WORD = re.compile(r"[A-Za-z]{2,}")


def find_plain(text, names=frozenset()):
    """The words in plain letters that are no names, each with what is around it."""
    text = " ".join(text.split())
    for sample in SAMPLES:
        text = text.replace(sample, " ")
    text = TYPED.sub(" ", text)
    allowed = NAMES | HOSTILE_WORDS | names
    found = [match for match in WORD.finditer(text) if match[0] not in allowed]
    return [
        f"{match[0]}: {reveal(text[max(0, match.start() - 40) : match.end() + 40])}"
        for match in found
    ]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    package = ChangedPackage(tmp_path_factory.mktemp("pseudo"))
    (package.folder / "pyproject.toml").touch()  # a checkout: resources/ is beside the package
    write_catalogue(package.folder / "resources")
    return package


@pytest.fixture(scope="module")
def environment(package):
    folder = package.folder
    places = {
        f"MPSBAR_{name}_DIR": str(folder / name.lower())
        for name in ("CONFIG", "DATA", "LOG", "RUN")
    }
    paths = os.pathsep.join([str(folder), str(ROOT / "tests")])
    given = {
        "MPSBAR_LANG": LANGUAGE,
        "PYTHONPATH": paths,
        "PYTHONUTF8": "1",
        "COLUMNS": "200",
        "MPSBAR_REPLAY": "m1-8gb",
    }
    return {**os.environ, **places, **given}


@pytest.fixture(scope="module")
def screens(package, environment):
    done = subprocess.run(
        [sys.executable, "-B", "-c", SCREENS], env={**environment, "MPSBAR_REPLAY": ""}, cwd=package.folder,
        capture_output=True, text=True, encoding="utf-8", timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "name",
    [
        "status", "menu of the app", "menu of the command", "findings", "probe", "doctor", "report", "why", "compare", "compare in a notebook",
        "notebook", "top",
        "keys of top", "detail in top", "question in top",
    ],
)  # fmt: skip
def test_no_text_on_a_screen_bypasses_the_language(screens, name):
    assert is_disguised(screens[name])
    names = {
        "probe": OPERATIONS, "report": OPERATIONS, "compare": COMPARED, "compare in a notebook": COMPARED,
        "notebook": frozenset(["None", "Tk"]),
    }  # fmt: skip
    text = re.sub(r"<[^>]*>", " ", screens[name]) if "notebook" in name else screens[name]
    assert find_plain(text, names.get(name, frozenset())) == []


def strip_arguments(shown):
    """Of a command's help without its usage, the names of its arguments and the examples: what people type."""
    text = "\n" + shown["help"]
    for typed in (
        shown["usage"],
        *(f"\n  {each}" for each in (*shown["arguments"], *shown["examples"])),
    ):
        assert text.count(typed) >= 1, (typed, text)
        text = text.replace(typed, "\n", 1)
    return text


@pytest.fixture(scope="module")
def helps(package, environment):
    """`--help` of every command, from one Python: each imports its feature's texts."""
    code = """
import argparse, contextlib, importlib, io, json
from mpsbar.cli.arguments import HelpFormatter
from mpsbar.cli.main import COMMANDS, build_parser, run
helps = {}
for command in ("", *COMMANDS):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        run([*([command] if command else []), "--help"])
    helps[command] = {"help": out.getvalue()}
    if command:
        parser = build_parser([command])._subparsers._group_actions[0].choices[command]
        shown = [action for action in parser._actions if action.help is not argparse.SUPPRESS]
        name = HelpFormatter(command)._format_action_invocation
        examples = importlib.import_module(f"mpsbar.cli.{command}").EXAMPLES
        helps[command] |= {"usage": parser.format_usage(), "arguments": [*map(name, shown)], "examples": examples}
print(json.dumps(helps))
"""
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], env=environment, cwd=package.folder,
        capture_output=True, text=True, encoding="utf-8", timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command(helps, command):
    text = strip_arguments(helps[command])
    assert is_disguised(text)
    assert find_plain(text, HELP_NAMES) == []


def test_the_help_of_all(helps):
    """But for the names of the commands."""
    text = helps[""]["help"]
    assert is_disguised(text)
    assert find_plain(text.partition("--bar")[0], frozenset(COMMANDS)) == []


def run_mpsbar(package, environment, *arguments):
    return subprocess.run(
        [sys.executable, "-B", "-m", "mpsbar", *arguments], env=environment, cwd=package.folder,
        capture_output=True, text=True, encoding="utf-8", timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"], ["why"], ["free", "1"], ["limit", "1", "2GB"], ["limit", "1", "x"], ["enable", "--list"], ["stat"],
        ["status", "--bogus"], ["status", "x"], ["free"], ["report", "-o", "/nowhere/x.html"], ["login", "status"],
        ["status", "--format", "{x}"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_line_of_a_command_bypasses_the_language(package, environment, arguments):
    done = run_mpsbar(package, environment, *arguments)
    text = done.stdout + done.stderr
    assert is_disguised(text), text
    names = {
        "Users",
        "me",
        *COMMANDS,
        *arguments,
        "held",
        "cached",
        "gpu",
        "budget",
        "available",
        "memory",
        "swap",
        "pressure",
        "health",
        "workers",
        "processes",
        "progress",
        "left",
    }
    assert find_plain(text, names) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "--json"], ["why", "--json"], ["free", "--json", "1"], ["doctor", "--self-test", "--json"],
        ["limit", "--json", "1", "2GB"], ["doctor", "--json", "--python", sys.executable],
        # Nobody listens at port 1: what ssh and mpsbar say about that is in the JSON.
        ["status", "--json", "--host", "127.0.0.1", "--ssh=-p 1"], ["why", "--json", "--host", "127.0.0.1", "--ssh=-p 1"],
        ["free", "--json", "--all", "--host", "127.0.0.1", "--ssh=-p 1"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_json_is_english_everywhere(package, environment, arguments):
    done = run_mpsbar(package, environment, *arguments)
    told = json.dumps(json.loads(done.stdout), ensure_ascii=False)
    assert not is_disguised(told), reveal(told)


def test_sentences_in_json_are_there_at_all(package, environment):
    """The test above would see nothing where there is nothing."""
    done = run_mpsbar(package, environment, "status", "--json")
    assert json.loads(done.stdout)["health"]["reasons"] == [
        "Memory is running low: 7.6 GB of swap in use, 1.3 GB of 8.0 GB available"
    ]


def test_a_plain_text_is_found():
    assert find_plain("4711 train.py 3.1 GB --json /a/b") == []
    assert [line.split(":")[0] for line in find_plain("4711 train.py is busy")] == ["is", "busy"]
