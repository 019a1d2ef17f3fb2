"""Parses TOML, and changes one top-level key in its text without touching the rest. Pure.

tomlkit could do the second too, but a flat file of a few keys does not need another parser in the
app: the standard one finds where each statement ends, and checks the result.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# Finding a statement's end parses it once for each of its lines.
_MAX_LINES = 200


class InvalidTomlError(ValueError):
    """The text cannot be parsed; the message says where."""


class UnchangeableKeyError(ValueError):
    """The text is TOML, but the key is written in a way that only a person can change."""


def parse_toml(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):  # imported late: a single reading parses nothing
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise InvalidTomlError(str(problem) or type(problem).__name__) from None


def render_value(value: bool | float | str | Sequence[str] | Mapping[str, Sequence[str]]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(int(value)) if value == value // 1 else repr(value)
    if isinstance(value, str):
        return _render_text(value)
    if isinstance(value, Mapping):
        fields = (f"{_render_key(name)} = {render_value(names)}" for name, names in value.items())
        return f"{{{', '.join(fields)}}}"
    return f"[{', '.join(map(_render_text, value))}]"


def _render_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _render_text(name)


def _render_text(text: str) -> str:
    # JSON's escapes are TOML's, except for one character that JSON does not escape.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def change_key(text: str, key: str, value: Any) -> str:
    """Returns the text with `key` changed in place, or added.

    Raises InvalidTomlError or UnchangeableKeyError if that fails.
    """
    before = parse_toml(text)
    changed = _change(text, key, render_value(value))
    wanted = {**before, key: list(value) if isinstance(value, tuple) else value}
    try:
        if parse_toml(changed) == wanted:
            return changed
    except InvalidTomlError:
        pass
    raise UnchangeableKeyError(key)


def _change(text: str, key: str, rendered: str) -> str:
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    ending = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    line_number = None
    for first, after, table in _statements(lines):
        if key in table:
            comment = _find_comment("".join(lines[first:after]), table)
            new = f"{key} = {rendered}{comment}{ending}"
            return "".join([*lines[:first], new, *lines[after:]])
        line_number = after
    line_number = _find_line_before_tables(lines) if line_number is None else line_number
    if line_number and not lines[line_number - 1].endswith("\n"):
        lines[line_number - 1] += ending
    return "".join([*lines[:line_number], f"{key} = {rendered}{ending}", *lines[line_number:]])


def _statements(lines: Sequence[str]) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """Yields each statement before the first [table]: its first line, the line after, values."""
    first = 0
    while first < len(lines) and not lines[first].lstrip().startswith("["):
        after, table = _read_statement(lines, first)
        if table:
            yield first, after, table
        first = after


def _read_statement(lines: Sequence[str], first: int) -> tuple[int, dict[str, Any]]:
    """Reads the shortest run of lines that is TOML: an unfinished array or string never is."""
    for after in range(first + 1, min(len(lines), first + _MAX_LINES) + 1):
        try:
            return after, parse_toml("".join(lines[first:after]))
        except InvalidTomlError:
            continue
    raise UnchangeableKeyError(lines[first].strip())


def _find_comment(statement: str, table: Mapping[str, Any]) -> str:
    """Returns the comment after the value, with the space before it."""
    for found in re.finditer(r"[ \t]*#", statement):
        try:
            if parse_toml(statement[: found.start()]) == table:
                return statement[found.start() :].rstrip("\r\n")
        except InvalidTomlError:
            continue
    return ""


def _find_line_before_tables(lines: Sequence[str]) -> int:
    """Returns the line above the first [table] and the comments right before it; else the end."""
    headers = (number for number, line in enumerate(lines) if line.lstrip().startswith("["))
    line_number = next(headers, len(lines))
    if line_number == len(lines):
        return line_number
    while line_number and lines[line_number - 1].lstrip().startswith("#"):
        line_number -= 1
    return line_number
