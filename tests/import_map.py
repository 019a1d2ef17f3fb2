"""The import map of CONTRIBUTING.md, checked over the sources: who may import whom."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

# Our own files, for whoever keeps some: where they are, written whole, by one process, whose they are.
OWN_FILES = {
    "system.files", "system.native_operations", "system.ownership", "system.paths", "system.single_instance",
}  # fmt: skip
# A throwaway Python: found by its files, started after a look at who can change it, listened to, ended.
THROWAWAY = {
    "system.child_answers",
    "system.child_process",
    "system.installed_pythons",
    "system.start_python",
}
# A folder and what of mpsbar it may import. `agent.protocol` names one module only; of two folders that
# a file lies in the inner one counts (`ui.text` is not `ui`).
FOLDERS: dict[str, set[str]] = {
    "agent": set(),
    # The user's process chooses its language by the same rules.
    "language": {"agent.language"},
    # What the copied agent needs too: the lists of frameworks and counters, what both sides name
    # alike, and what is masked where it leaves a record.
    "core": {"language", "agent.conventions", "agent.counters", "agent.frameworks", "agent.secrets"},
    "system": {"language", "core", "agent.conventions", "agent.frameworks", "agent.secrets", "agent.user_folders"},
    "workers": {
        "language", "core", *OWN_FILES, *THROWAWAY, "agent.__version__", "agent.conventions", "agent.frameworks", "agent.language", "agent.peer",
        "agent.secrets", "agent.user_folders", "agent.protocol",
    },
    "ui.text": {"language", "core", "agent.frameworks", "agent.secrets", "agent.wording", "ui.columns", "ui.process_table"},
    # The one list of columns, made of text; `status`, `top` and the report show it.
    "ui.columns": {"language", "core", "ui.text"},
    # Their rows and which columns fit, for `status` and `top`.
    "ui.process_table": {"language", "core", "ui.text", "ui.columns"},
    # The words of a comparison are pure; the rest of `compare` imports torch.
    "dtypes": {
        "language", "core", *OWN_FILES, *THROWAWAY, "ui.text", "agent.mps_support", "agent.secrets", "agent.user_folders", "dtypes.compare.text",
    },
    # Handed to a Python that has no mpsbar.
    "dtypes.compare": set(),
    "doctor": {"language", "core", *OWN_FILES, *THROWAWAY, "system.waiting", "ui.text", "agent.frameworks", "agent.mps_support", "agent.secrets"},
    # mpsbar's check of itself tries every part of it.
    "doctor.self_test": {"language", "core", "system", "workers", "desktop", "ui.text"},
    "history": {"language", "core", *OWN_FILES},
    # One page shows what all features found.
    "history.report": {"language", "core", *OWN_FILES, "ui.columns", "ui.text", "history", "dtypes", "doctor"},
    "action_runner": {"core", "system", "workers", "dtypes", "doctor"},
    # Part of the monitor's tick: how each process ended.
    "end_follower": {"core", "system"},
    # All ends that are known, for `mpsbar why` and the report.
    "end_reader": {"core", "system", "end_follower", "history"},
    # Part of the monitor's tick: what is freed by itself.
    "auto_freer": {"core", "system"},
    "monitor": {"action_runner", "auto_freer", "end_follower", "core", "system", "workers", "dtypes", "doctor", "history"},
    "desktop": {"language", "core", "agent.frameworks", *OWN_FILES},
    # Beside the front ends: it serves what the monitor has read, to Prometheus and from other hosts.
    "fleet": {
        "language", "core", "agent.frameworks", "agent.secrets", *OWN_FILES, "system.waiting", "ui.columns", "ui.text", "monitor", "workers.parse",
    },
    # Not the machine and the wire themselves: front ends draw what the monitor has read.
    "ui": {
        "language", "core", *OWN_FILES, "system.settings_file", "ui.columns", "ui.process_table", "ui.text", "dtypes", "doctor", "history",
        "history.report", "monitor", "end_reader", "desktop", "workers.environments",
    },
    "cli": {
        "language", "agent.__version__", "agent.frameworks", "core", "system", "workers", "ui", "ui.process_table", "ui.text", "dtypes", "dtypes.compare",
        "doctor", "doctor.self_test", "history", "history.report", "monitor", "end_reader", "desktop",
        "fleet", "snapshot",  # of mpsbar/__init__.py
    },
    # `snapshot()` is for scripts that watch others; a worker never calls it by itself. `compare()` is imported when called.
    "__init__": {"agent", "core.snapshot", "dtypes.compare", "monitor"},
    "__main__": {"cli"},
}  # fmt: skip

# Foreign modules with a home: nobody else may import them.
HOMES: dict[str, tuple[str, ...]] = {
    "torch": (
        "dtypes/dtype_child.py",
        "dtypes/deep_child.py",
        "dtypes/operations.py",
        "dtypes/checks.py",
        "dtypes/compare/",
        "doctor/doctor_child.py",
        "system/child_answers.py",
        "cli/demo_workers/",
    ),
    "mlx": ("cli/demo_workers/",),
    "rumps": ("ui/menubar/",),
    "objc": ("ui/menubar/", "desktop/", "system/macos/"),
    "AppKit": ("ui/menubar/", "desktop/", "system/macos/"),
    "Foundation": ("ui/menubar/", "desktop/", "system/macos/"),
    "Metal": ("system/macos/",),
    "ServiceManagement": ("desktop/",),
    "UserNotifications": ("desktop/",),
    # Not in what a scan runs at every tick, nor in what `mpsbar status` imports: it takes 15 to 25 ms.
    "psutil": ("system/macos/", "system/stop.py", "system/ownership.py", "workers/request.py"),
    "textual": ("ui/terminal/",),
    "prometheus_client": ("fleet/",),
}

# What runs in the worker has the standard library of Python 3.9 and nothing else.
IN_THE_WORKER = ("agent/", "__init__.py")
STDLIB_IN_WORKER = {
    "_signal", "_socket", "_thread", "ast", "atexit", "collections", "contextlib", "ctypes", "errno", "functools", "gc", "gettext", "hashlib", "html", "importlib", "itertools",
    "json", "opcode", "operator", "os", "platform", "pwd", "re", "signal", "socket", "stat", "struct", "subprocess", "sys", "threading",
    "time", "types", "typing", "unicodedata", "warnings", "weakref",
}  # fmt: skip
# What a file exists to import: the agent under its other name, the user's sitecustomize, the
# backends that the list of frameworks names ("?": no literal).
ALLOWED_IN_WORKER = {
    "agent/startup_hook.py": "mpsbar_agent",
    "agent/enabled_mpsbar.py": "mpsbar_agent",
    "agent/site/sitecustomize.py": "sitecustomize",
    "agent/all_backends.py": "?",
}

# Only made of what they are given. Reading this computer's clock, files, processes or settings is for others.
PURE = re.compile(
    r"core/.*|(.*/)?(text|verdicts|rows)\.py|ui/(bar|columns|command_rows|menu|process_rows|process_submenu|process_table)\.py"
)
IMPURE = {
    "asyncio", "ctypes", "glob", "io", "os", "pathlib", "platform", "psutil", "select", "shutil", "signal", "socket", "subprocess",
    "tempfile", "threading", "time",
}  # fmt: skip


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
    top, _, target = found.target.partition(".")
    is_impure = top in IMPURE or _is_of(found.target, f"{package}.system")
    if is_impure and PURE.fullmatch(found.file) and found.target != "pathlib.PurePath":
        return f"is pure and may not import {found.target}"
    if top != package:
        return _judge_foreign(found.file, top)
    here = find_folder(found.file.removesuffix(".py").replace("/", "."))
    there = find_folder(target)
    if here is None:
        return f"is in no folder of the map: {found.file.split('/')[0].removesuffix('.py')}"
    if target in ("__version__", "") or there == here:
        return None
    # `ui` does not name `ui.text`: a folder of its own is allowed by its own name.
    if any(_is_of(target, allowed) and find_folder(allowed) == there for allowed in FOLDERS[here]):
        return None
    return f"{here} may not import {target}"


def find_folder(module: str) -> str | None:
    """The innermost folder of the map that a module is in."""
    fits = [folder for folder in FOLDERS if _is_of(module, folder)]
    return max(fits, key=len, default=None)


def _is_of(module: str, folder: str) -> bool:
    return module == folder or module.startswith(folder + ".")


def _judge_foreign(file: str, top: str) -> str | None:
    home = HOMES.get(top)
    if home is not None and not any(file.startswith(place) for place in home):
        return f"{top} may not be imported here"
    if ALLOWED_IN_WORKER.get(file) == top:
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
