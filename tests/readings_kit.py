"""Recorded readings as the property dictionaries and values that a Mac would give a program.

The product itself never reads these texts: it reads the same values through the system's functions.
"""

import plistlib
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "readings"

_ENTRY = re.compile(r"^[ |]*\+-o (?P<name>.+?)  <class (?P<class>\w+)(?:, id (?P<id>0x[0-9a-f]+))?")
_PROPERTY = re.compile(r'^[ |]*"(?P<key>[^"]+)" = (?P<value>.+)$')
_TOKEN = re.compile(
    r'\s*(?:"(?P<text>[^"]*)"|<(?P<data>[0-9a-f]*)>|(?P<number>-?\d+)|(?P<word>Yes|No)'
    r"|(?P<mark>[{}()=,]))"
)
_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def read_accelerators(name: str) -> list[dict[str, Any]]:
    """From a file under tests/readings, ioreg's text or its property list."""
    content = (FOLDER / name).read_bytes()
    if not name.endswith(".plist"):
        return parse_ioreg(content.decode())
    return [_with_class(entry) for entry in plistlib.loads(content)]


def read_sysctls(name: str) -> dict[str, str]:
    """By name, as text; comments are ours or the recorder's."""
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    pairs = (re.match(r"([\w.]+)\s*[:=]\s*(.*?)\s*(?:#.*)?$", line) for line in lines)
    return {pair[1]: pair[2] for pair in pairs if pair}


def read_vm_stat(name: str) -> dict[str, int]:
    """Pages by their label, and the size of one as "page size"."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    counts = {
        label: int(count) for label, count in re.findall(r'(?m)^"?([^":]+)"?:\s+(\d+)\.$', text)
    }
    size = re.search(r"page size of (\d+) bytes", text)
    assert size is not None
    return {**counts, "page size": int(size[1])}


def parse_ioreg(text: str) -> list[dict[str, Any]]:
    """Each entry with its class, and its number if that was recorded, as ioreg -a names them."""
    entries: list[dict[str, Any]] = []
    for line in text.splitlines():
        if head := _ENTRY.match(line):
            entries.append({"IORegistryEntryName": head["name"], "IOObjectClass": head["class"]})
            if head["id"] is not None:
                entries[-1]["IORegistryEntryID"] = int(head["id"], 16)
        elif found := _PROPERTY.match(line):
            entries[-1][found["key"]] = parse_value(found["value"])
    return entries


def parse_value(text: str) -> Any:
    tokens = list(_TOKEN.finditer(text))
    value = _take(tokens)
    assert not tokens, text
    return value


def parse_swap(text: str) -> dict[str, int]:
    """total, used and free in bytes; with a decimal comma too, which the command has in German."""
    found = re.findall(r"(\w+) = (\d+)[.,](\d+)([KMG])", text)
    return {
        name: int(whole) * _SIZES[unit] + int(part) * _SIZES[unit] // 100
        for name, whole, part, unit in found
    }


def _take(tokens: list[re.Match[str]]) -> Any:
    token = tokens.pop(0)
    if token["mark"] == "{":
        pairs = {}
        while tokens[0]["mark"] != "}":
            key = _take(tokens)
            assert tokens.pop(0)["mark"] == "="
            pairs[key] = _take(tokens)
            _skip_comma(tokens)
        tokens.pop(0)
        return pairs
    if token["mark"] == "(":
        items = []
        while tokens[0]["mark"] != ")":
            items.append(_take(tokens))
            _skip_comma(tokens)
        tokens.pop(0)
        return items
    return _plain(token)


def _skip_comma(tokens: list[re.Match[str]]) -> None:
    if tokens[0]["mark"] == ",":
        tokens.pop(0)


def _plain(token: re.Match[str]) -> Any:
    if token["text"] is not None:
        return token["text"]
    if token["data"] is not None:
        return bytes.fromhex(token["data"])
    return int(token["number"]) if token["number"] else token["word"] == "Yes"


def _with_class(entry: dict[str, Any]) -> dict[str, Any]:
    """Trimmed lists lack the class that ioreg -a always tells; for clients it is the only one."""
    is_client = "IOUserClientCreator" in entry
    name = (
        "AGXDeviceUserClient" if is_client else entry.get("IOClass", entry["IORegistryEntryName"])
    )
    children = [_with_class(child) for child in entry.get("IORegistryEntryChildren", [])]
    return {"IOObjectClass": name, **entry, "IORegistryEntryChildren": children}
