"""Changes the Mac's sources one place at a time and runs their tests: a change that none notices
shows what is not tested.

python tests/mutations.py [--count 100] [--seconds 60] [--minutes 30] [--only PART OF A PATH …]

Works on a copy of the checkout. Each change is tried against the tests of its own module, for at
most `--seconds`; a test that hangs has noticed it. Prints the survivors; exits with 1 if one of
them is not explained in EXPLAINED.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("ui/menubar", "desktop", "system/macos")
COPIED = ("mpsbar", "tests", "resources", "packaging", "pyproject.toml", "setup.py", "README.md")
# By folder: where its tests are. Those of the changed module run first.
TESTS = {
    "ui/menubar": ("tests/ui/menubar",),
    "desktop": ("tests/desktop", "tests/ui/menubar/test_install_command.py"),
    "system/macos": ("tests/system/macos",),
}
# Each takes seconds, so they run only against what survives all others of its folder.
SLOW = (
    "tests/system/macos/test_steady.py",
    "tests/system/macos/test_fuzz.py::test_properties_of_any_kind",
    "tests/ui/menubar/test_app_real.py",
    "tests/ui/menubar/test_app_probe.py::test_for_real",
    "tests/ui/menubar/test_menu_items.py::test_refreshes_leave_nothing_behind",
)
# Survivors that no test here can notice: file, the changed line, and why.
EXPLAINED: dict[tuple[str, str], str] = {
    ("mpsbar/ui/menubar/app.py", "self._lay_out()"): "the menu is laid out again when it opens",
    ("mpsbar/ui/menubar/app.py", "return True"): "only saves time: the next line compares anew",
    (
        "mpsbar/ui/menubar/front_end.py",
        '_log.info("%s: %s", notice.title, notice.text)',
    ): "a line of the log, for people",
    (
        "mpsbar/ui/menubar/front_end.py",
        "self.is_menu_open = False",
    ): "the first lay-out finds that no menu is open",
    (
        "mpsbar/ui/menubar/menu_items.py",
        "self.is_spare = False  # hidden, and may be shown while the menu is open",
    ): "each lay-out sets it before anybody reads it",
    (
        "mpsbar/ui/menubar/menu_items.py",
        "for slots, rows in zip(self._sections, sections, strict=True):",
    ): "a check of our own code: there are always as many sections",
    (
        "mpsbar/system/macos/iokit.py",
        "for name, value in zip(names, values, strict=True)",
    ): "a check of our own code: both have as many as were counted",
    (
        "mpsbar/desktop/login_macos.py",
        "return subprocess.run(command, timeout=10, check=False).returncode == 0",
    ): "an open that fails raises then, which is False all the same",
    (
        "mpsbar/desktop/login_export.py",
        "link.unlink(missing_ok=True)",
    ): "where the link is gone already, so is its folder, or it has other units in it",
}
_FLIPPED = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE,
    ast.LtE: ast.Gt, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True)
class Mutation:
    file: str
    line: int
    before: str  # the line, stripped
    what: str
    source: str  # of the whole file, changed


def list_places(file: str) -> list[tuple[str, int]]:
    """The numbers of the nodes of its tree that can be changed."""
    nodes = list(ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))))
    # frozen=True, slots=True of a dataclass say what may be done with it, not what it does.
    decorated = (d for node in nodes for d in getattr(node, "decorator_list", ()))
    left_out = {id(part) for decorator in decorated for part in ast.walk(decorator)}
    return [
        (file, number)
        for number, node in enumerate(nodes)
        if id(node) not in left_out and change(node) is not None
    ]


def make_mutation(file: str, number: int) -> Mutation:
    text = (ROOT / file).read_text(encoding="utf-8")
    tree = ast.parse(text)
    node = list(ast.walk(tree))[number]
    what = change(node)
    assert what is not None
    line: int = getattr(node, "lineno", 1)
    source = ast.unparse(ast.fix_missing_locations(tree))
    return Mutation(file, line, text.splitlines()[line - 1].strip(), what, source)


def change(node: ast.AST) -> str | None:
    """Changes one node in place and says how; None: nothing to change in it."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _FLIPPED:
        node.ops[0] = _FLIPPED[type(node.ops[0])]()
        return "the comparison is the other way round"
    if isinstance(node, ast.BoolOp):
        node.op = _FLIPPED[type(node.op)]()
        return "and is or, or is and"
    if isinstance(node, ast.If):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return "the condition is the other way round"
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
        return f"{not node.value} is {node.value}"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        node.value = ast.Constant(None)
        return "the call is left out"
    if isinstance(node, ast.Return) and isinstance(node.value, (ast.Call, ast.BoolOp, ast.Compare)):
        node.value = ast.Constant(None)
        return "None is returned"
    return None


def choose(count: int, only: list[str]) -> list[Mutation]:
    """Spread evenly over all of them, always the same."""
    files = [
        path.relative_to(ROOT).as_posix()
        for folder in FOLDERS
        for path in sorted((ROOT / "mpsbar" / folder).glob("*.py"))
    ]
    chosen = [file for file in files if not only or any(part in file for part in only)]
    places = [place for file in chosen for place in list_places(file)]
    count = min(count, len(places))
    return [make_mutation(*places[index * len(places) // count]) for index in range(count)]


def list_runs(file: str) -> list[list[str]]:
    """The arguments of pytest, one run after the other: the quick tests, then the slow ones."""
    path = Path(file)
    folder = path.parent.relative_to("mpsbar").as_posix()
    own = sorted((ROOT / "tests" / folder).glob(f"test_{path.stem}*.py"))
    quick = [*(str(test.relative_to(ROOT)) for test in own), *TESTS[folder]]
    slow = [name for name in SLOW if name.startswith(f"tests/{folder}/")]
    leave_out = [word for name in SLOW for word in ("--deselect", name)]
    return [[*quick, *leave_out], *([slow] if slow else [])]


def survives(mutation: Mutation, copy: Path, seconds: float) -> bool:
    target = copy / mutation.file
    original = target.read_text(encoding="utf-8")
    target.write_text(mutation.source, encoding="utf-8")
    try:
        return all(_passes(arguments, copy, seconds) for arguments in list_runs(mutation.file))
    finally:
        target.write_text(original, encoding="utf-8")


def _passes(arguments: list[str], copy: Path, seconds: float) -> bool:
    options = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    command = [sys.executable, "-B", "-m", "pytest", *options, *arguments]
    env = {**os.environ, "PYTHONPATH": f"{copy}{os.pathsep}{copy / 'tests'}"}
    quiet = subprocess.DEVNULL
    try:
        done = subprocess.run(
            command, cwd=copy, env=env, stdout=quiet, stderr=quiet, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    mutations, end = choose(options.count, options.only), time.monotonic() + options.minutes * 60
    tried, unexplained = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy / name)
        one_of_each = {str(Path(mutation.file).parent): mutation.file for mutation in mutations}
        for file in one_of_each.values():
            if not all(_passes(arguments, copy, options.seconds) for arguments in list_runs(file)):
                print(f"{file}: its tests fail without a change already", flush=True)
                return 2
        for mutation in mutations:
            if time.monotonic() > end:
                break
            tried += 1
            if survives(mutation, copy, options.seconds):
                why = EXPLAINED.get((mutation.file, mutation.before))
                unexplained += why is None
                place = f"{mutation.file}:{mutation.line}: {mutation.before}"
                print(f"{place}\n  {mutation.what}: {why or 'NOT NOTICED'}", flush=True)
    print(f"{tried} of {len(mutations)} changes tried, {unexplained} not noticed", flush=True)
    return 1 if unexplained else 0


if __name__ == "__main__":
    raise SystemExit(main())
