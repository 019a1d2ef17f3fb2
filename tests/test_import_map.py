"""The house keeps to its map, and the map's own test is tested on planted violations."""

import sys
from pathlib import Path

import pytest
from import_map import ROOMS, STDLIB_IN_WORKER, find_violations

PACKAGE = Path(__file__).parents[1] / "mpsbar"


def test_the_sources_keep_to_the_map():
    assert find_violations(PACKAGE) == []


def test_every_folder_is_a_room():
    folders = {path.name for path in PACKAGE.iterdir() if any(path.rglob("*.py"))}
    assert folders - {"resources"} <= set(ROOMS)  # which holds pictures, no code


def test_the_worker_imports_only_the_standard_library_of_its_python():
    assert set(sys.stdlib_module_names) >= STDLIB_IN_WORKER


@pytest.mark.parametrize(
    ("file", "source", "problem"),
    [
        ("agent/server.py", "import psutil", "runs in the worker and may not import psutil"),
        ("agent/server.py", "import torch", "torch may not be imported here"),
        (
            "agent/backends/mps.py",
            "def f():\n    import torch.mps",
            "torch may not be imported here",
        ),
        ("agent/server.py", "from ..model import snapshot", "agent may not import model.snapshot"),
        ("agent/x.py", "from mpsbar.client import w", "agent may not import client.w"),
        ("__init__.py", "import platformdirs", "may not import platformdirs"),
        ("__init__.py", "from .client import workers", "__init__ may not import client.workers"),
        ("model/snapshot.py", "from mpsbar.views import menu", "model may not import views.menu"),
        ("model/snapshot.py", "import mpsbar.monitor", "model may not import monitor"),
        ("client/w.py", "from mpsbar.agent import server", "client may not import agent.server"),
        ("client/w.py", "from mpsbar.machine import linux", "client may not import machine.linux"),
        ("views/menu.py", "import rumps", "rumps may not be imported here"),
        ("apps/menubar.py", "from mpsbar.client import w", "apps may not import client.w"),
        ("apps/fleet.py", "import AppKit", "AppKit may not be imported here"),
        ("monitor.py", "from mpsbar.apps import menubar", "monitor may not import apps.menubar"),
        ("machine/linux.py", "import Metal", "Metal may not be imported here"),
        ("views/x.py", "import importlib\nimportlib.import_module('torch')", "torch may not be"),
        ("helpers.py", "from mpsbar.model import x", "is in no room of the map: helpers"),
    ],
)
def test_planted_violations_are_caught(tmp_path, file, source, problem):
    path = tmp_path / "mpsbar" / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    found = find_violations(tmp_path / "mpsbar")
    assert len(found) == 1
    assert problem in found[0]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("client/w.py", "from mpsbar.agent import protocol"),
        ("client/w.py", "from mpsbar.agent.places import list_sockets"),
        ("monitor.py", "from mpsbar.client.workers import Workers"),
        ("agent/turn.py", "from . import parked\nimport ctypes"),
        ("machine/macos/gpu.py", "import Metal"),
        ("apps/menubar.py", "import rumps\nfrom mpsbar.monitor import Monitor"),
    ],
)
def test_allowed_imports_are_not(tmp_path, file, source):
    path = tmp_path / "mpsbar" / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    assert find_violations(tmp_path / "mpsbar") == []
