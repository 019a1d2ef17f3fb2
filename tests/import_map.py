"""The import map of CONTRIBUTING.md, checked over the sources: who may import whom."""

import ast
from dataclasses import dataclass
from pathlib import Path

# A room and the rooms of mpsbar it may import from. `agent.protocol` names one module only.
ROOMS: dict[str, set[str]] = {
    "agent": set(),
    "model": set(),
    "views": {"model"},
    "machine": {"model"},
    "client": {"model", "agent.protocol", "agent.peer", "agent.places", "agent.__version__"},
    "probe": {"model"},
    "storage": {"model", "agent.places"},
    "actions": {"model", "machine", "client", "probe", "storage"},
    "monitor": {"actions", "model", "views", "machine", "client", "probe", "storage"},
    "desktop": set(),
    "apps": {"model", "views", "storage", "monitor", "desktop"},
    "commands": {
        "agent.__version__", "model", "views", "machine", "client", "probe", "storage", "monitor", "desktop", "apps",
    },
    "__init__": {"agent"},
    "__main__": {"commands"},
}  # fmt: skip

# Foreign modules with a home: nobody else may import them.
HOMES: dict[str, tuple[str, ...]] = {
    "torch": (
        "probe/child.py",
        "probe/operations.py",
        "probe/checks.py",
        "probe/device.py",
        "commands/demo_workers/",
    ),
    "mlx": ("commands/demo_workers/",),
    "rumps": ("apps/menubar",),
    "objc": ("apps/menubar", "desktop/", "machine/macos"),
    "AppKit": ("apps/menubar", "desktop/", "machine/macos"),
    "Foundation": ("apps/menubar", "desktop/", "machine/macos"),
    "Metal": ("machine/macos",),
    "ServiceManagement": ("desktop/",),
    "UserNotifications": ("desktop/",),
    "textual": ("apps/terminal",),
    "prometheus_client": ("apps/exporter",),
}

# What runs in the worker has the standard library of Python 3.9 and nothing else.
IN_THE_WORKER = ("agent/", "__init__.py")
STDLIB_IN_WORKER = {
    "atexit", "collections", "contextlib", "ctypes", "errno", "gc", "hashlib", "importlib", "json", "os",
    "platform", "pwd", "re", "selectors", "signal", "socket", "stat", "struct", "sys", "threading", "time",
    "types", "typing", "weakref",
}  # fmt: skip
# What the two start-up files exist for: the agent under its other name, the user's sitecustomize.
NAMED_AT_START = {"agent/hook.py": "mpsbar_agent", "agent/site/sitecustomize.py": "sitecustomize"}


@dataclass(frozen=True, slots=True)
class Import:
    file: str  # relative to the package
    line: int
    target: str  # dotted, absolute


def find_violations(package: Path) -> list[str]:
    problems = []
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package).as_posix()
        for found in read_imports(path, file, package.name):
            if problem := judge(found, package.name):
                problems.append(f"{file}:{found.line} {problem}")
    return problems


def read_imports(path: Path, file: str, package: str) -> list[Import]:
    """Every import, also those inside functions and under TYPE_CHECKING."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [Import(file, node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, file, package)
            found += [Import(file, node.lineno, f"{base}.{alias.name}") for alias in node.names]
        elif _is_dynamic(node):
            assert isinstance(node, ast.Call)
            found.append(Import(file, node.lineno, str(getattr(node.args[0], "value", "?"))))
    return found


def judge(found: Import, package: str) -> str | None:
    top, _, rest = found.target.partition(".")
    if top != package:
        return _judge_foreign(found.file, top)
    here = found.file.split("/")[0].removesuffix(".py")
    there = rest.split(".")[0]
    if there == here or (here == "__init__" and not rest):
        return None
    allowed = ROOMS.get(here)
    if allowed is None:
        return f"is in no room of the map: {here}"
    fits = any(rest == way or rest.startswith(way + ".") for way in allowed)
    if fits or there in ("__version__", ""):
        return None
    return f"{here} may not import {rest}"


def _judge_foreign(file: str, top: str) -> str | None:
    home = HOMES.get(top)
    if home is not None and not any(file.startswith(place) for place in home):
        return f"{top} may not be imported here"
    if NAMED_AT_START.get(file) == top:
        return None
    if file.startswith(IN_THE_WORKER) and top not in STDLIB_IN_WORKER:
        return f"runs in the worker and may not import {top}"
    return None


def _absolute(node: ast.ImportFrom, file: str, package: str) -> str:
    if not node.level:
        return node.module or ""
    folder = [package, *file.split("/")[:-1]]
    base = folder[: len(folder) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def _is_dynamic(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and node.args):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name in ("import_module", "__import__")
