"""Texts that people read are given to `_()`, whole and where Babel finds them."""

import ast
import re
from pathlib import Path

import mpsbar

PACKAGE = Path(mpsbar.__file__).parent
# In the user's process or in a Python without mpsbar.
ELSEWHERE = re.compile(r"agent/|dtypes/compare/|.*_child\.py$|cli/demo_workers/")
# Whatever is given to these is read by a person.
SPEAKERS = {
    "UserError", "UnusablePythonError", "ArgumentTypeError", "NotTrustedError", "HostProblem", "refuse",
    "error", "print", "show_progress", "input",
}  # fmt: skip
PROGRAM = re.compile(r"^mpsbar( \w+)?: ")
LOGS = {"_log", "log", "logging"}
WORDS = re.compile(r"[A-Za-z']{2,}[,:;]? [A-Za-z']{2,}")


def find_faults(package):
    faults = []
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package).as_posix()
        if not ELSEWHERE.match(file):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            faults += [f"{file}:{line} {what}" for line, what in judge(tree)]
    return faults


def judge(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for part in ast.walk(node):
                is_wrapped = isinstance(part, ast.Call) and name_of(part) in ("_", "ngettext")
                if is_wrapped and isinstance(part.args[0], ast.Constant):
                    yield part.lineno, "is inside an f-string, where Babel does not see it"
        if isinstance(node, ast.Call):
            texts = [keyword.value for keyword in node.keywords if keyword.arg == "help"]
            if name_of(node) in SPEAKERS and not is_log(node):
                texts += node.args[:1]
            for text in texts:
                if has_words(text):
                    yield text.lineno, "is not given to _()"


def name_of(call):
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def is_log(call):
    return isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") in LOGS


def has_words(node):
    """Whether it is a text with a sentence in it, not just a name, a command or two values."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    written = [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]
    return any(WORDS.search(PROGRAM.sub("", text)) for text in written)


def test_every_text_is_given_to_the_language():
    assert find_faults(PACKAGE) == []


def test_what_is_not_given_is_found(tmp_path):
    lines = [
        'raise UserError("no such thing")',
        'raise UserError(f"there is no {name}")',
        'parser.add_argument("--x", help="what it does")',
        "print(f\"{name}: {_('is not there')}\")",
        '_log.error("%s was not found", name)',
        'print(_("all is well"))',
        'print(f"mpsbar: {complaint}")',
    ]
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli/verb.py").write_text("\n".join(lines))
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/text.py").write_text(lines[0])
    assert [fault.split()[0] for fault in find_faults(tmp_path)] == [
        "cli/verb.py:1", "cli/verb.py:2", "cli/verb.py:3", "cli/verb.py:4",
    ]  # fmt: skip
