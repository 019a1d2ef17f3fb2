"""Apple's API as api.json has it: which class answers which message, with which arguments."""

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# <objc/NSObject.h> is not among the headers of the index; its messages, by hand.
ROOT = {
    "+alloc": "", "+new": "", "+class": "", "+superclass": "", "+instancesRespondToSelector:": ":",
    "-init": "", "-class": "", "-self": "", "-hash": "", "-isEqual:": "@", "-description": "",
    "-isKindOfClass:": "#", "-respondsToSelector:": ":", "-retain": "", "-release": "",
    "-autorelease": "", "-copy": "", "-dealloc": "", "-performSelector:": ":",
    "-performSelector:withObject:": ": @", "-conformsToProtocol:": "@",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Message:
    """One method of Apple's: `key` is '-setTitle:' or '+separatorItem'."""

    key: str
    types: tuple[str, ...]
    since: tuple[int, ...]
    deprecated: tuple[int, ...] | None


def find_message(class_name: str, key: str) -> Message | None:
    """The message in this class or the nearest superclass that has it."""
    for methods in _method_tables(class_name):
        if (row := methods.get(key)) is not None:
            return parse_message(key, row)
    return parse_message(key, ROOT[key] + "||") if key in ROOT else None


@functools.cache
def parse_message(key: str, row: str) -> Message:
    types, since, deprecated = row.split("|")
    return Message(
        key, tuple(types.split()), parse_version(since or "10.0"), _version_or_none(deprecated)
    )


def parse_version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def superclass(class_name: str) -> str | None:
    name: str | None = read_api()["classes"][class_name]["super"]
    return name


def has_class(class_name: str) -> bool:
    return class_name in read_api()["classes"]


@functools.cache
def enums() -> dict[str, int]:
    pairs = (pair.split("=") for line in read_api()["enums"] for pair in line.split())
    return {name: int(value) for name, value in pairs}


@functools.cache
def known_names() -> frozenset[str]:
    """Every class, enum value, constant and function of the frameworks, CoreFoundation's aside."""
    api = read_api()
    lines = " ".join(api["names"] + api["other_classes"]).split()
    return frozenset([*lines, *api["classes"], *enums()])


@functools.cache
def read_api() -> dict[str, Any]:
    text = Path(__file__).with_name("api.json").read_text(encoding="utf-8")
    api: dict[str, Any] = json.loads(text)
    return api


def _method_tables(class_name: str) -> Iterator[dict[str, str]]:
    api = read_api()
    name: str | None = class_name
    while name is not None:
        row = api["classes"][name]
        yield row["methods"]
        yield from (api["protocols"][protocol] for protocol in row["also"])
        name = row["super"]


def _version_or_none(text: str) -> tuple[int, ...] | None:
    return parse_version(text) if text else None
