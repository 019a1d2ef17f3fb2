"""Our own sources against Apple's headers: every name and selector exists, and is not on its way out.

Sources are read as text, not run: a line that no test reaches is checked too.
"""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from appkit.index import ROOT, known_names, parse_message, read_api

FRAMEWORKS = ("AppKit", "Foundation", "ServiceManagement", "UserNotifications")
MINIMUM = (13, 0)  # the oldest macOS we run on
# PyObjC's own, not Apple's.
_BRIDGE = {"NSMakeSize", "NSMakeRect", "NSMakeRange", "NSApp"}
# Methods of our Python that end in an underscore or are camelCase without being messages.
_PYTHON = {"callAfter", "callLater", "getLogger"}
# Selectors, each with why we send it although it is newer than our minimum or deprecated.
EXCEPTIONS: dict[str, str] = {}


@dataclass(frozen=True)
class Use:
    file: str
    line: int
    name: str
    is_selector: bool
    arguments: int = 0


def find_uses(root: Path) -> list[Use]:
    files = [path for path in sorted(root.rglob("*.py")) if _is_ours(path)]
    return [use for path in files for use in read_uses(path.read_text("utf-8"), path.name)]


def _is_ours(path: Path) -> bool:
    """Only where a framework is imported can a message be sent."""
    text = path.read_text("utf-8")
    return any(f"from {framework} import" in text for framework in FRAMEWORKS) or (
        "ui/menubar" in path.as_posix()
    )


def read_uses(source: str, file: str) -> Iterator[Use]:
    nodes = list(ast.walk(ast.parse(source)))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module in FRAMEWORKS:
            for alias in node.names:
                yield Use(file, node.lineno, alias.name, is_selector=False)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if _looks_like_selector(node.func.attr):
                yield Use(file, node.lineno, node.func.attr, True, len(node.args))
        elif isinstance(node, ast.Attribute) and id(node) not in called and _is_later(node.attr):
            yield Use(file, node.lineno, node.attr, True, node.attr.count("_"))


def _is_later(name: str) -> bool:
    """`make = X.alloc().initWith…_`: a message that is sent later."""
    return name.endswith("_") and not name.startswith("_")


def _looks_like_selector(name: str) -> bool:
    if name.startswith("_") or name in _PYTHON:
        return False
    is_camel = any(c.isupper() for c in name[1:]) and "_" not in name and name[0].islower()
    return is_camel or (name.endswith("_") and not name.endswith("__")) or _is_newer(name)


def _is_newer(name: str) -> bool:
    """A plain word could be Python's own, but some are messages that our oldest macOS lacks."""
    found = _find(name)
    return bool(found) and all(since > MINIMUM for since, _ in found)


def judge(use: Use) -> str | None:
    """One sentence on what is wrong, or None."""
    where = f"{use.file}:{use.line} {use.name}"
    if not use.is_selector:
        known = use.name in known_names() or use.name in _BRIDGE
        return None if known else f"{where}: Apple has no such name"
    selector = use.name.replace("_", ":")
    found = _find(selector)
    if not found:
        return f"{where}: Apple has no such selector"
    if selector.count(":") != use.arguments:
        return f"{where}: takes {selector.count(':')} arguments, gets {use.arguments}"
    if use.name in EXCEPTIONS:
        return None
    if all(since > MINIMUM for since, _ in found):
        return f"{where}: only from macOS {_show(min(since for since, _ in found))} on"
    if all(until is not None and until <= MINIMUM for _, until in found):
        return f"{where}: deprecated since macOS {_show(max(u for _, u in found if u))}"
    return None


@functools.cache
def _find(selector: str) -> list[tuple[tuple[int, ...], tuple[int, ...] | None]]:
    """Since when and until when, for each class that has it; the receiver's class is not known."""
    api = read_api()
    tables = [row["methods"] for row in api["classes"].values()] + list(api["protocols"].values())
    tables.append({key: f"{types}||" for key, types in ROOT.items()})
    messages = [
        parse_message(sign + selector, table[sign + selector])
        for table in tables
        for sign in "+-"
        if sign + selector in table
    ]
    return [(message.since, message.deprecated) for message in messages]


def _show(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
