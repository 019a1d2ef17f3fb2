"""One list of frameworks: nothing else names them all, and a row more is seen everywhere."""

import ast
import re

import pytest
from changed_package import REPOSITORY, ChangedPackage

from mpsbar.agent.frameworks import FRAMEWORKS, LIMITABLE
from mpsbar.agent.import_backends import BACKENDS

ROW = """    Framework(
        "jax", "JAX", "jax", "ArrayImpl", ("libjax_common",),
        (Allocator("jax", is_metal=True, label="JAX", above_limit="Above the limit JAX waits."),),
        tensor_module="jax._src.array",
    ),"""
IMPORT = "    from .backends import jax"
BACKEND = """
from . import IN_USE, loaded

NAME = FRAMEWORK = "jax"
ANYWHERE = True
CENSUS_ALONE = False
CAN_LIMIT = LIMIT_ANYWHERE = LIMIT_AT_IMPORT = True
_cached, _limit = [2], [None]
measure = lambda: 5 + _cached[0]
release_call = lambda: (_cached.__setitem__, (0, 0))
shrink = lambda limit: 5
set_limit = lambda limit, call: call(_limit.__setitem__, 0, limit)
read_limit = lambda: _limit[0]
state = lambda gpu_client: IN_USE if loaded("jax") else None
stats = lambda: {"allocated": 5, "reserved": measure(), "peak": 9, "driver": None,
    "budget": None, "limit": read_limit()}
"""


@pytest.fixture
def with_jax(tmp_path):
    package = ChangedPackage(tmp_path)
    package.insert("agent/frameworks.py", ")  # fmt: skip", ROW)
    package.insert("agent/frameworks.py", "    from .backends import", IMPORT)
    package.write("agent/backends/jax.py", BACKEND)
    return package


def test_every_backend_belongs_to_its_framework():
    owners = {
        allocator.name: framework.name
        for framework in FRAMEWORKS
        for allocator in framework.allocators
    }
    assert {backend.NAME: backend.FRAMEWORK for backend in BACKENDS} == owners
    assert BACKENDS[-1].NAME == "cpu"  # every torch has it: the last that is worth showing


def test_what_a_limit_means_is_said_of_every_backend_that_has_one():
    can_limit = {backend.NAME for backend in BACKENDS if backend.CAN_LIMIT}
    assert {allocator.name for allocator in LIMITABLE} == can_limit
    assert all(allocator.label for allocator in LIMITABLE)


FIND_MODULES = """
import os
from modulefinder import ModuleFinder
from mpsbar.agent.import_backends import BACKENDS

finder = ModuleFinder([os.getcwd()])  # not the standard library
finder.import_hook("mpsbar.agent.import_backends")
wanted = {f"mpsbar.agent.backends.{backend.NAME}" for backend in BACKENDS}
print(len(wanted), wanted - set(finder.modules))
"""


def test_import_statements_name_every_backend(tmp_path):
    """A frozen program (PyInstaller) has only the modules that they name."""
    assert ChangedPackage(tmp_path).run(FIND_MODULES) == f"{len(BACKENDS)} set()\n"


def test_one_more_framework_is_in_a_frozen_program(with_jax):
    assert with_jax.run(FIND_MODULES) == f"{len(BACKENDS) + 1} set()\n"


def test_a_backend_that_no_import_statement_names_is_found(with_jax):
    with_jax.replace("agent/frameworks.py", IMPORT, "")
    assert with_jax.run(FIND_MODULES).endswith(" {'mpsbar.agent.backends.jax'}\n")


ADVICE = "MLX (pip install mlx)"  # instead of MPS: it names one of each on purpose


def find_lists(source: str) -> list[int]:
    """The lines that name two frameworks or more: in one text, or in one display."""
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and isinstance(node.body[0], ast.Expr)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            named = {
                framework.name
                for text in _texts(node)
                for framework in FRAMEWORKS
                if _is(framework, text)
            }
        elif isinstance(node, ast.JoinedStr | ast.Constant) and id(node) not in docstrings:
            words = " ".join(_texts(node)).replace(ADVICE, "")
            named = {framework.name for framework in FRAMEWORKS if _mentions(words, framework)}
        else:
            continue
        if len(named) > 1:
            found.append(node.lineno)
    return found


def _texts(node: ast.AST) -> list[str]:
    values = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    texts = [value.decode() if isinstance(value, bytes) else value for value in values]
    return [text for text in texts if isinstance(text, str)]


def _is(framework, text: str) -> bool:
    return text.strip("/").lower() in {name.lower() for name in _known(framework)}


def _mentions(words: str, framework) -> bool:
    names = "|".join(map(re.escape, _known(framework)))
    return re.search(rf"\b(?:{names})\b", words, re.IGNORECASE) is not None


def _known(framework) -> set[str]:
    # On the CPU is where both compute.
    backends = {allocator.name for allocator in framework.allocators} - {"cpu"}
    words = {framework.name, framework.label, framework.module}
    return words | backends | {*framework.libraries}


@pytest.mark.parametrize(
    "source",
    [
        'NAMES = ("torch", "mlx.core")',
        'KINDS = {"torch": "PyTorch", "mlx": "MLX"}',
        'say("no torch or MLX here")',
        'HINTS = [b"/libtorch", b"/libmlx"]',
        'say(f"{n} PyTorch or MLX processes")',
        'LIMITED = {"mps": "ends", "mlx": "waits"}',
        'say("only MPS and MLX memory can be limited")',
    ],
)
def test_a_second_list_is_found(source):
    assert find_lists(source)


def test_nothing_else_lists_the_frameworks():
    package = REPOSITORY / "mpsbar"
    lists = {
        f"{name}:{line}"
        for path in sorted(package.rglob("*.py"))
        if (name := path.relative_to(package).as_posix()) != "agent/frameworks.py"
        for line in find_lists(path.read_text(encoding="utf-8"))
    }
    assert lists == set()


def test_one_more_framework_is_found_from_the_outside(with_jax):
    output = with_jax.run("""
from mpsbar.core import trends
from mpsbar.core.machine import Process
from mpsbar.core.snapshot import Snapshot
from mpsbar.system import linux, platform
from mpsbar.ui.text import wording
from mpsbar.workers import enable

maps = b"7f00-7f01 r-xp 0 08:01 12    /v/jax/libjax_common.so.1\\n"
print(platform.framework_of("/v/jax/libjax_common.dylib"), linux.parse_maps(maps))
print(wording.found(Snapshot(0.0)))
print(wording.found(Snapshot(0.0, processes=(Process(1, 0.0, "x.py", ("jax",)),))))
print("jax" in trends.METAL, "'jax'" in enable._PTH.replace(chr(92), ""))
""")
    assert output.splitlines() == [
        "jax {'jax': '/v/jax/libjax_common.so.1'}",
        "You have no PyTorch, MLX or JAX processes running. To start one: mpsbar run python train.py",
        "1 JAX process, not connected",
        "True True",
    ]


def test_a_macs_scan_does_not_stop_before_the_last_framework(with_jax):
    """It once ended after two, whichever they were."""
    output = with_jax.run("""
from mpsbar.system.macos import processes

paths = [b"/v/libtorch.dylib", b"/v/libmlx.dylib", b"/v/libjax_common.dylib", b"/v/libother.dylib"]

def read_region(system, pid, address, buffer):
    if address >= len(paths):
        return False
    region = processes.REGION.pack(processes.EXECUTE, address, 1, paths[address])
    buffer[:] = region
    return True

processes._read_region = read_region
print(*processes.read_libraries(None, 1))
""")
    assert output == "torch mlx jax\n"


def test_one_more_framework_tells_what_it_holds(with_jax):
    output = with_jax.run("""
import sys
from abc import ABC
from types import ModuleType

class Array(ABC):
    pass  # as in JAX: the real class is no subclass, it is registered

class ArrayImpl:
    shape, dtype, nbytes = (2, 3), "jax.float32", 24

Array.register(ArrayImpl)
jax = sys.modules["jax"] = ModuleType("jax")
jax.__version__, jax.Array = "1.2", Array
sys.modules["jax._src.array"] = ModuleType("jax._src.array")
sys.modules["jax._src.array"].ArrayImpl = ArrayImpl

from mpsbar.agent import methods, tensors
from mpsbar.agent.host_exceptions import _OUR_TYPES
from mpsbar.core.snapshot import Snapshot
from mpsbar.ui.text.status_json import build_status
from mpsbar.workers.parse import parse_worker

print(methods.hello()["frameworks"], "jax" in _OUR_TYPES)
worker = parse_worker(1, methods.hello(), methods.stats({}), "live", 0.0)
shown = build_status(Snapshot(0.0, (worker,)))["workers"][0]
print(*(shown[name] for name in ("framework", "framework_version", "device", "held", "cached")))
alive = [ArrayImpl()]
print(tensors.count({"jax": 24})["groups"])
""")
    assert output.splitlines() == [
        "{'jax': '1.2'} True",
        "jax 1.2 jax 7 2",
        "[{'device': 'jax', 'dtype': 'float32', 'shape': '2x3', 'count': 1, 'bytes': 24}]",
    ]


def test_one_more_framework_is_freed_and_limited(with_jax):
    output = with_jax.run("""
import os, sys
from types import ModuleType

os.environ["MPSBAR_LIMIT"] = str(1 << 30)
sys.modules["jax"] = ModuleType("jax")

from mpsbar.agent.free import FreeJob
from mpsbar.agent.limit import LimitJob, limit_at_import
from mpsbar.agent.memory import read_memory

def finish(job):
    while (answer := job.step()) is None:
        pass
    return answer

limit_at_import("jax")
print(read_memory()["limit"])
print(finish(LimitJob(None, 2 << 30))["backends"], read_memory()["limit"])
print(finish(LimitJob(None, None))["state"], "limit" in read_memory())
print(read_memory()["cached"], finish(FreeJob(None))["freed"], read_memory()["cached"])
""")
    assert output.splitlines() == [
        str(1 << 30),
        f"{{'jax': {{'limit': {2 << 30}, 'held': 7, 'freed': 0}}}} {2 << 30}",
        "done False",
        "2 2 0",
    ]


def test_what_a_limit_means_for_one_more_framework_is_in_help_dialogs_and_outcomes(with_jax):
    output = with_jax.run("""
import subprocess, sys
from samples import make_backend, make_snapshot, make_worker

from mpsbar.core.actions import Limited
from mpsbar.ui.menu import build_menu
from mpsbar.ui.rows import UiState
from mpsbar.ui.text.dialogs import ask_limit
from mpsbar.ui.text.outcomes import say_limited

for verb in ("limit", "run"):
    done = subprocess.run([sys.executable, "-m", "mpsbar", verb, "--help"], capture_output=True, text=True)
    text = " ".join(done.stdout.split())
    print("MPS, MLX or JAX memory" in text, "Above the limit JAX waits." in text)
worker = make_worker(backends=(make_backend("jax"),), methods=frozenset(["limit"]))
print(ask_limit(worker, 1 << 30).text.splitlines()[0])
print("Above the limit JAX waits." in repr(build_menu(make_snapshot(worker), UiState(is_clickable=True))))
print(say_limited(Limited(1, "x", "impossible")))
""")
    assert output.splitlines() == [
        *["True True"] * 2,
        "Above the limit JAX waits.",
        "True",
        "only MPS, MLX and JAX memory can be limited, and it uses none",
    ]


def test_one_more_framework_starts_the_agent_under_run_and_after_enable(with_jax, tmp_path):
    """`mpsbar run` and `mpsbar enable` as they are, and a jax that someone imports."""
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax/__init__.py").write_text("__version__ = '1.2'")
    output = with_jax.run("""
import os, subprocess, sys
from pathlib import Path
from mpsbar.workers import enable, run
from mpsbar.workers.environments import Environment

THREADS = "import sys, jax; print(len(sys._current_frames()), *sys.argv[1:])"

def show(*arguments, **environ):
    done = subprocess.run([sys.executable, *arguments], env=environ, capture_output=True, text=True)
    print(done.stdout + done.stderr, end="")

plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
show("-c", THREADS, "plain", **plain, PYTHONPATH=os.getcwd())
show("-c", THREADS, "run", **run.build_environment({**plain, "PYTHONPATH": os.getcwd()}))
site = Path("site-packages")
enable.enable(Environment(sys.executable, sys.version_info[:2], sys.prefix, site, has_mpsbar=False))
show("-c", f"import site; site.addsitedir({str(site.absolute())!r}); {THREADS}", "enable", **plain, PYTHONPATH=os.getcwd())
show("-c", f"import _mpsbar_start as s; s.install(); {THREADS}", "start file", **plain, PYTHONPATH=f"{os.getcwd()}:{site.absolute()}")
""")
    assert output.splitlines() == [
        "1 plain",
        "2 run",
        "2 enable",
        "2 start file",  # how PEP 829 starts it
    ]


def test_the_list_brings_no_backend_into_the_monitor(tmp_path):
    package = ChangedPackage(tmp_path)
    code = "import sys, mpsbar.agent.frameworks; print([n for n in sys.modules if 'backends' in n])"
    assert package.run(code) == "[]\n"
