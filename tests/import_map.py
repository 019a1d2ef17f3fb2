"""The import map of CONTRIBUTING.md, checked over the sources: who may import whom."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

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
        "language", "core", "system.child_process", "system.files", "system.ownership", "system.paths", "system.start_python", "agent.__version__",
        "agent.conventions", "agent.frameworks", "agent.language", "agent.peer", "agent.protocol", "agent.secrets", "agent.user_folders",
    },
    "ui.text": {"language", "core", "agent.frameworks", "agent.secrets", "agent.wording"},
    # The one list of columns, made of text; `status`, `top` and the report show it.
    "ui.columns": {"language", "core", "ui.text"},
    # Their rows and which columns fit, for `status` and `top`.
    "ui.process_table": {"language", "core", "ui.text", "ui.columns"},
    # What `status` prints, also in the doctor's diagnostics.
    "ui.status_table": {"language", "core", "ui.text", "ui.process_table"},
    # The words of a comparison are pure; the rest of `compare` imports torch.
    "dtypes": {
        "language", "core", "system.child_answers", "system.child_process", "system.files", "system.ownership", "system.paths", "ui.text",
        "agent.mps_support", "agent.secrets", "agent.user_folders", "dtypes.compare.text",
    },
    # Handed to a Python that has no mpsbar.
    "dtypes.compare": set(),
    "doctor": {
        "language", "core", "system.child_answers", "system.child_process", "system.installed_pythons", "system.paths",
        "system.waiting", "ui.status_table", "ui.text", "agent.frameworks", "agent.mps_support", "agent.secrets",
    },
    # mpsbar's check of itself tries every part of it.
    "doctor.self_test": {"language", "core", "system", "workers", "desktop", "ui.text"},
    "history": {"language", "core", "system.files", "system.ownership", "system.paths", "system.single_instance", "system.uptime"},
    # One page shows what all features found.
    "history.report": {
        "language", "core", "system.files", "system.native_operations", "system.paths", "ui.columns", "ui.text", "history", "dtypes", "doctor",
    },
    # The doctor's report with what mpsbar knows of itself, for commands, menu and page.
    "doctor_reader": {"core", "system", "workers", "desktop", "doctor", "fleet"},
    "action_runner": {"agent.conventions", "core", "system", "workers", "dtypes", "doctor", "doctor_reader"},
    # Part of the monitor's tick: how each process ended.
    "end_follower": {"core", "system"},
    # All ends that are known, for `mpsbar why` and the report.
    "end_reader": {"core", "system", "end_follower", "history"},
    # Part of the monitor's tick: what is freed by itself.
    "auto_freer": {"core", "system"},
    "monitor": {"action_runner", "auto_freer", "end_follower", "core", "system", "workers", "dtypes", "history"},
    "desktop": {"core", "agent.frameworks", "system.files", "system.ownership", "system.paths"},
    # Beside the front ends: it serves what the monitor has read, to Prometheus and from other hosts.
    "fleet": {"language", "core", "agent.frameworks", "agent.secrets", "system.files", "system.waiting", "ui.text", "workers.parse"},
    # Not the machine and the wire themselves: front ends draw what the monitor has read.
    "ui": {
        "language", "agent.conventions", "core", "system.files", "system.native_operations", "system.paths", "system.settings_file", "system.single_instance",
        "ui.columns", "ui.process_table", "ui.status_table", "ui.text", "dtypes", "doctor", "history.report", "monitor", "end_reader", "desktop",
        "workers.environments",
    },
    "cli": {
        "language", "agent.__version__", "agent.conventions", "agent.frameworks", "core", "system", "workers", "ui", "ui.process_table", "ui.status_table", "ui.text",
        "dtypes", "dtypes.compare", "doctor", "doctor.self_test", "history", "history.report", "monitor", "doctor_reader", "end_reader", "desktop", "fleet",
        "snapshot",  # of mpsbar/__init__.py
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
    "objc": ("system/macos/",),
    "AppKit": ("ui/menubar/", "desktop/"),
    "Foundation": ("ui/menubar/", "desktop/"),
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
    "agent/import_backends.py": "?",
}

# Only made of what they are given: `core`, the words that people read, and every module whose
# docstring says "Pure". Reading this computer's clock, files, processes or settings is for others.
PURE = re.compile(r"core/.*|ui/text/.*|(.*/)?(text|verdicts|rows)\.py")
IMPURE = {
    "asyncio", "atexit", "builtins", "concurrent", "ctypes", "fcntl", "fileinput", "gc", "getpass", "glob", "http", "importlib", "inspect", "io",
    "linecache", "locale", "logging", "mmap", "multiprocessing", "os", "pathlib", "platform", "psutil", "pwd", "queue", "random", "resource",
    "secrets", "select", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading", "time", "urllib",
    "uuid", "webbrowser",
}  # fmt: skip
HARMLESS = {"io.StringIO", "pathlib.PurePath", "signal.Signals"}
# Called, they read a file, a person's answer or the clock. A number as a local time is fine.
IMPURE_CALLS = {"input", "open"}
CLOCK_CALLS = {"now", "today", "utcnow"}
# What pure modules may import although it is not pure as a whole: words in the person's language,
# lists, and values beside the code that reads or shows them.
GIVEN_TO_PURE = {
    "language", "agent.conventions", "agent.counters", "agent.frameworks", "agent.wording", "dtypes.checks", "dtypes.operations",
    "history.retention", "system.platform", "ui.terminal.themes",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Import:
    file: str  # relative to the package
    line: int
    target: str  # dotted, absolute


@dataclass(frozen=True, slots=True)
class Source:
    """One module, parsed."""

    file: str  # relative to the package
    tree: ast.Module
    imports: list[Import]

    @property
    def is_pure(self) -> bool:
        says_so = re.search(r"\bPure\b", ast.get_docstring(self.tree) or "")
        return (says_so or PURE.fullmatch(self.file)) is not None


def find_violations(package: Path) -> list[str]:
    problems = []
    sources = read_sources(package)
    impure = {_module(source.file) for source in sources if not source.is_pure} - GIVEN_TO_PURE
    for source in sources:
        found = find_impure_calls(source.tree) if source.is_pure else []
        for each in source.imports:
            problem = judge_pure(each, package.name, impure) if source.is_pure else None
            found.append((each.line, problem or judge(each, package.name)))
        problems += [f"{source.file}:{line} {problem}" for line, problem in found if problem]
    return problems


def find_unused(package: Path) -> list[str]:
    """What the map allows and no module needs."""
    unused = {f"{folder} -> {there}" for folder, allowed in FOLDERS.items() for there in allowed}
    unused |= {f"{top} in {place}" for top, places in HOMES.items() for place in places}
    for found in (each for source in read_sources(package) for each in source.imports):
        top, _, target = found.target.partition(".")
        if top == package.name:
            here = find_folder(_module(found.file))
            unused -= {f"{here} -> {there}" for there in find_allowances(here, target)}
        places = HOMES.get(top, ())
        unused -= {f"{top} in {place}" for place in places if found.file.startswith(place)}
    return sorted(unused)


def read_sources(package: Path) -> list[Source]:
    sources = []
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        sources.append(Source(file, tree, read_imports(tree, file, package.name)))
    return sources


def read_imports(tree: ast.Module, file: str, package: str) -> list[Import]:
    """Every import, also those inside functions and under TYPE_CHECKING."""
    found = []
    importers = _find_importers(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [Import(file, node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, file, package)
            found += [Import(file, node.lineno, f"{base}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Call) and _name(node.func) in importers:
            found.append(Import(file, node.lineno, _first_argument(node)))
    return found


def judge_pure(found: Import, package: str, impure: set[str]) -> str | None:
    """`impure`: the modules of the package that pure ones may not import, without its name."""
    top, _, target = found.target.partition(".")
    is_of_system = not found.file.startswith("system/") and _is_of(
        found.target, f"{package}.system"
    )
    is_ours = top == package and bool({target, target.rpartition(".")[0]} & impure)
    if (top in IMPURE or is_of_system or is_ours) and found.target not in HARMLESS:
        return f"is pure and may not import {found.target}"
    return None


def find_impure_calls(tree: ast.Module) -> list[tuple[int, str | None]]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [
        (node.lineno, f"is pure and may not call {_name(node.func)}")
        for node in calls
        if (isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS)
        or (isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK_CALLS)
    ]


def judge(found: Import, package: str) -> str | None:
    top, _, target = found.target.partition(".")
    if top != package:
        return _judge_foreign(found.file, top)
    here = find_folder(_module(found.file))
    there = find_folder(target)
    if here is None:
        return f"is in no folder of the map: {found.file.split('/')[0].removesuffix('.py')}"
    if target in ("__version__", "") or there == here:
        return None
    return None if find_allowances(here, target) else f"{here} may not import {target}"


def find_allowances(here: str | None, target: str) -> list[str]:
    """What allows `here` this import. `ui` does not name `ui.text`: an inner folder is allowed
    by its own name."""
    there = find_folder(target)
    if here is None or here == there:
        return []
    return [each for each in FOLDERS[here] if _is_of(target, each) and find_folder(each) == there]


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


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _find_importers(tree: ast.Module) -> set[str]:
    """The names by which a module is imported while the program runs, other names given here too."""
    names = {"import_module", "__import__"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {each.asname for each in node.names if each.asname and each.name in names}
        elif isinstance(node, ast.Assign) and _name(node.value) in names:
            names |= {_name(target) for target in node.targets}
    return names


def _name(node: ast.AST) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _first_argument(call: ast.Call) -> str:
    """The name of the imported module, "?" if it is no literal."""
    named = [each.value for each in call.keywords if each.arg == "name"]
    return str(next((getattr(each, "value", "?") for each in [*call.args, *named]), "?"))
