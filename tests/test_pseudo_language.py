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

from mpsbar.cli.main import VERBS

# Drawn in one Python; a name for each, and what a person sees.
SCREENS = """
import asyncio, json
from dataclasses import replace
shown = {}

from ui.text.test_wording import SCENE
from ui.test_menu import APP
from mpsbar.core.settings import Settings
from mpsbar.core.actions import Freed
from mpsbar.ui.menu import build_menu
from mpsbar.ui.rows import Row, UiState
from mpsbar.ui.text.status import render_status
from mpsbar.ui.columns import explain_counters
shown["status"] = render_status(SCENE) + "\\n" + "\\n".join(explain_counters())

def list_rows(rows):
    for row in rows:
        yield "\\n".join(filter(None, (row.line, row.tooltip, row.end_note)))
        yield from list_rows(row.children)

freed = {4711: Freed(4711, "train.py", "done", 3 << 30, 0.04)}
for state in (APP, UiState()):
    menu = build_menu(replace(SCENE, freed=tuple(freed.values())) if isinstance(SCENE.freed, tuple) else SCENE, state)
    shown[f"menu of {'the app' if state.is_app else 'the command'}"] = "\\n".join(
        [menu.bar.label, menu.bar.tooltip, *list_rows(menu.rows)]
    )

from ui.text.test_findings import ADVICE, REASONS
from mpsbar.ui.text import endings, findings
from mpsbar.core.snapshot import Snapshot
shown["findings"] = "\\n".join(findings.say_reason(case[0] if isinstance(case, tuple) else case.values[0], "train.py") for case in REASONS)

from dtypes.test_summary import BAD, TERMINAL
from probe_samples import make_probe
from mpsbar.dtypes.table import render_probe
from mpsbar.dtypes.verdicts import find_changes
shown["probe"] = render_probe(BAD, TERMINAL, "/data/probes/mps.json", find_changes(make_probe(torch="2.12.0"), BAD))

from doctor.test_render import CHECKUP
from mpsbar.doctor.render import render_doctor
shown["doctor"] = render_doctor(CHECKUP, "/Users/me")

from report_kit import make_ends, make_page, read_text
from mpsbar.cli.ended_runs import render
shown["report"] = read_text(make_page())
shown["why"] = "\\n".join(map(render, make_ends()))

from ui.fake_monitor import FakeMonitor
from ui.terminal.test_app import build_series
from ui.terminal_kit import play

async def look_around(p):
    shown["top"] = p.screen()
    await p.press("question_mark")
    shown["keys of top"] = p.screen()
    await p.press("escape", "enter")
    shown["detail in top"] = p.screen()
    await p.press("escape", "s")
    shown["question in top"] = p.screen()

play(FakeMonitor(list(build_series())[-1]), look_around, (160, 60))
print(json.dumps(shown))
"""
# Names, units and codes: the same in every language.
NAMES = set("""
Apple M1 M3 Max Pro PyTorch MLX MPS Metal torch mps mlx cuda cpu Python macOS CPU GPU PID RSS JSON HTML mpsbar rumps
textual kB MB GB TB ms min dtype numpy safetensors arm64 x86_64 ipykernel Jupyter gc collect
""".split())  # fmt: skip
# What a person types or a program is called: paths, options, files, modules, settings, numbers with units.
TYPED = re.compile(
    r"""~?[\w.@+-]*/[\w.@/+~…-]*       # a path
    | --?[A-Za-z][\w-]*(=\S+)?         # an option
    | \b[\w-]+\.[\w.]+(\(\))?          # train.py, torch.float16, 2.13.0
    | \b[A-Za-z]+_\w+\b                # PYTORCH_ENABLE_MPS_FALLBACK
    | \b\w*\d\w*\b                     # float16, x86_64
    | aten::\w+
    """,
    re.VERBOSE,
)
WORD = re.compile(r"[A-Za-z]{2,}")


def find_plain(text, names=()):
    """The words in plain letters that are no names."""
    allowed = NAMES | set(names)
    return [word for word in WORD.findall(TYPED.sub(" ", text)) if word not in allowed]


def show_lines(text, names=()):
    """For the message of a failed test: each line with such words."""
    return [
        f"{words} in {reveal(line.strip())!r}"
        for line in text.splitlines()
        if (words := find_plain(line, names))
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
