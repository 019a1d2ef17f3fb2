"""The tree keeps to its map, and the map's own test is tested on planted violations."""

import ast
import re
import sys
from pathlib import Path

import pytest
from import_map import FOLDERS, HOMES, STDLIB_IN_WORKER, find_unused, find_violations

PACKAGE = Path(__file__).parents[1] / "mpsbar"


def test_the_sources_keep_to_the_map():
    assert find_violations(PACKAGE) == []


def test_the_map_allows_nothing_that_is_not_needed():
    assert find_unused(PACKAGE) == []


def test_what_the_map_allows_and_nobody_needs_is_found(monkeypatch):
    monkeypatch.setitem(FOLDERS, "core", FOLDERS["core"] | {"cli"})
    monkeypatch.setitem(HOMES, "rumps", (*HOMES["rumps"], "history/"))
    assert find_unused(PACKAGE) == ["core -> cli", "rumps in history/"]


def test_every_folder_is_in_the_map():
    folders = {path.name for path in PACKAGE.iterdir() if any(path.rglob("*.py"))}
    assert folders <= set(FOLDERS)


def test_contributing_shows_every_folder_and_no_file_that_is_gone():
    root = PACKAGE.parent
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tree = text[text.index("\nmpsbar/\n") : text.index("\nresources/ ")]
    modules = [
        path for path in PACKAGE.iterdir() if path.suffix == ".py" or any(path.rglob("*.py"))
    ]
    shown = set(re.findall(r"\w+", tree))
    assert {path.stem for path in modules} - {"__main__"} <= shown
    named = set(re.findall(r"`((?:\w+/)+\w+\.\w+)`", text))
    assert len(named) > 40
    missing = [path for path in named if not any((top / path).exists() for top in (root, PACKAGE))]
    assert missing == []


def test_contributing_names_what_features_may_use_of_system():
    root = PACKAGE.parent
    text = " ".join((root / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    sentence = re.search(r"Of `system` they use single modules: .*?\. (?=`agent`)", text)
    assert sentence is not None
    named = set(re.findall(r"`(\w+)`", sentence[0]))
    allowed = {
        each.partition(".")[2]
        for folder, there in FOLDERS.items()
        if "system" not in there  # those may use all of it
        for each in there
        if each.startswith("system.")
    }
    assert sorted(allowed - named) == []


def test_every_module_says_its_one_job_in_its_first_line():
    """CONTRIBUTING shows folders only: a file's own first line is where a reader finds its job."""
    docstrings = {
        path.relative_to(PACKAGE).as_posix(): ast.get_docstring(
            ast.parse(path.read_text(encoding="utf-8"))
        )
        for path in PACKAGE.rglob("*.py")
    }
    assert len(docstrings) > 200
    silent = [
        file for file, text in docstrings.items() if not text or len(text.partition("\n")[0]) < 20
    ]
    assert silent == []


def test_the_worker_imports_only_the_standard_library_of_its_python():
    assert set(sys.stdlib_module_names) >= STDLIB_IN_WORKER


@pytest.mark.parametrize(
    ("file", "source", "problem"),
    [
        ("agent/server.py", "import tomli", "runs in the worker and may not import tomli"),
        ("agent/server.py", "import torch", "torch may not be imported here"),
        (
            "agent/backends/mps.py",
            "def f():\n    import torch.mps",
            "torch may not be imported here",
        ),
        ("agent/server.py", "import importlib\nimportlib.import_module(name)", "may not import ?"),
        (
            "agent/server.py",
            "import importlib\nimportlib.import_module(name='tomli')",
            "may not import tomli",
        ),
        (
            "agent/server.py",
            "from importlib import import_module as load\nload('tomli')",
            "may not import tomli",
        ),
        ("agent/server.py", "load = __import__\nload('tomli')", "may not import tomli"),
        (
            "core/snapshot.py",
            "from mpsbar.agent import user_folders",
            "core may not import agent.user_folders",
        ),
        ("agent/server.py", "from ..core import snapshot", "agent may not import core.snapshot"),
        ("agent/x.py", "from mpsbar.workers import w", "agent may not import workers.w"),
        ("__init__.py", "import platformdirs", "may not import platformdirs"),
        ("__init__.py", "from .workers import poll", "__init__ may not import workers.poll"),
        ("core/snapshot.py", "from mpsbar.ui import menu", "core may not import ui.menu"),
        ("core/snapshot.py", "import mpsbar.monitor", "core may not import monitor"),
        ("core/snapshot.py", "import mpsbar.system.paths", "may not import mpsbar.system.paths"),
        ("core/alerts.py", "def f():\n    import time", "is pure and may not import time"),
        ("ui/rows.py", "from pathlib import Path", "is pure and may not import pathlib.Path"),
        ("doctor/text.py", "import subprocess", "is pure and may not import subprocess"),
        ("dtypes/verdicts.py", "from os import environ", "is pure and may not import os.environ"),
        (
            "ui/process_rows.py",
            '"""Rows. Pure."""\nfrom mpsbar.system.native_operations import read_native_operations',
            "is pure and may not import mpsbar.system.native_operations",
        ),
        ("ui/text/wording.py", "import time", "is pure and may not import time"),
        ("ui/text/x.py", "def f():\n    import sqlite3", "is pure and may not import sqlite3"),
        ("dtypes/any.py", '"""A table. Pure."""\nimport os', "is pure and may not import os"),
        ("core/x.py", "import logging", "is pure and may not import logging"),
        ("core/x.py", "from random import random", "is pure and may not import random.random"),
        ("core/x.py", "import urllib.request", "is pure and may not import urllib.request"),
        ("core/x.py", "import datetime\ndatetime.datetime.now()", "is pure and may not call now"),
        ("core/x.py", "from datetime import date\ndate.today()", "is pure and may not call today"),
        ("core/x.py", "def f():\n    open('/x')", "is pure and may not call open"),
        ("core/x.py", "__import__('time')", "may not import time"),
        ("workers/w.py", "from mpsbar.agent import server", "workers may not import agent.server"),
        ("workers/w.py", "from mpsbar.system import linux", "workers may not import system.linux"),
        ("dtypes/x.py", "from mpsbar.doctor import rules", "dtypes may not import doctor.rules"),
        ("doctor/x.py", "from mpsbar.dtypes import runner", "doctor may not import dtypes.runner"),
        ("history/x.py", "from mpsbar.ui.text import y", "history may not import ui.text.y"),
        (
            "history/x.py",
            "import mpsbar.history.report.page",
            "history may not import history.report",
        ),
        (
            "history/report/x.py",
            "from mpsbar.ui import menu",
            "history.report may not import ui.menu",
        ),
        ("desktop/x.py", "from mpsbar.ui.text import y", "desktop may not import ui.text.y"),
        ("ui/text/x.py", "from mpsbar.ui import rows", "ui.text may not import ui.rows"),
        ("ui/text/x.py", "from mpsbar.dtypes import text", "ui.text may not import dtypes.text"),
        ("ui/menu.py", "import rumps", "rumps may not be imported here"),
        ("ui/menubar/x.py", "from mpsbar.workers import w", "ui may not import workers.w"),
        ("ui/menubar/x.py", "from mpsbar.system import scan", "ui may not import system.scan"),
        ("ui/terminal/x.py", "import AppKit", "AppKit may not be imported here"),
        ("monitor.py", "from mpsbar.ui import menubar", "monitor may not import ui.menubar"),
        ("system/linux.py", "import Metal", "Metal may not be imported here"),
        ("system/scan.py", "import psutil", "psutil may not be imported here"),
        ("ui/terminal/x.py", "import importlib\nimportlib.import_module('torch')", "torch may not"),
        ("helpers.py", "from mpsbar.core import x", "is in no folder of the map: helpers"),
    ],
)
def test_planted_violations_are_caught(tmp_path, file, source, problem):
    path = tmp_path / "mpsbar" / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    found = find_violations(tmp_path / "mpsbar")
    assert len(found) == 1
    assert problem in found[0]


def test_what_is_pure_imports_no_module_that_is_not(tmp_path):
    package = tmp_path / "mpsbar"
    (package / "history" / "report").mkdir(parents=True)
    (package / "history" / "reader.py").write_text("import sqlite3")
    (package / "history" / "period.py").write_text('"""Values. Pure."""')
    page = package / "history" / "report" / "page.py"
    page.write_text('"""A page. Pure."""\nfrom mpsbar.history.period import Period')
    assert find_violations(package) == []
    page.write_text('"""A page. Pure."""\nfrom mpsbar.history.reader import Period')
    [problem] = find_violations(package)
    assert "is pure and may not import mpsbar.history.reader.Period" in problem


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("workers/w.py", "from mpsbar.agent import protocol"),
        ("doctor/x.py", "from mpsbar.system.child_process import start_child"),
        ("core/x.py", "from mpsbar.agent.frameworks import FRAMEWORKS"),
        ("dtypes/x.py", "from mpsbar.ui.text.wording import size\nimport mpsbar.system.paths"),
        ("history/report/x.py", "from mpsbar.dtypes import verdicts\nimport mpsbar.history.reader"),
        ("monitor.py", "from mpsbar.workers.poll import WorkerPoll"),
        ("agent/x.py", "from . import server\nimport ctypes"),
        ("system/macos/gpu.py", "import Metal"),
        ("ui/menubar/app.py", "import rumps\nfrom mpsbar.monitor import Monitor"),
        ("ui/menu.py", "from mpsbar.ui.text import wording"),
        ("core/naming.py", "from pathlib import PurePath"),
        ("ui/text/x.py", "from datetime import datetime\ndatetime.fromtimestamp(0).astimezone()"),
        ("dtypes/x.py", '"""A table. It reads the clock."""\nimport time'),
        ("ui/controller.py", "import time\nfrom mpsbar.system import paths"),
    ],
)
def test_allowed_imports_are_not(tmp_path, file, source):
    path = tmp_path / "mpsbar" / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    assert find_violations(tmp_path / "mpsbar") == []
