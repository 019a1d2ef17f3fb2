"""Since which torch an operation has a kernel of its own on MPS. Pure.

The list is in resources/mps-operations.json: made from native_functions.yaml, which every wheel of
torch has, of the releases 2.2 to 2.15 for macOS. tests/core/test_native_operations.py says how.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from mpsbar.core.torch_facts import Release, parse_release


@dataclass(frozen=True, slots=True)
class NativeOperations:
    since: Mapping[str, Release]  # by the operation's name without aten::
    newest: Release  # the newest release that was looked at

    def find(self, operation: str) -> Release | None:
        """The first release that has it; None: no release up to `newest`."""
        return self.since.get(operation.removeprefix("aten::"))


def parse_native_operations(text: str) -> NativeOperations:
    table = json.loads(text)
    since = {
        name: release
        for version, names in table["since"].items()
        if (release := parse_release(version)) is not None
        for name in names
    }
    return NativeOperations(since, parse_release(table["newest"]) or (0, 0))
