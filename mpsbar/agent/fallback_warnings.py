"""torch's warnings that an operation ran on the CPU because MPS lacks it: the texts, and the first.

torch warns once in a process for all operations together. Python notes a warning that it has shown
in the module it came from: there the first can be read at the end, with no hook in the host.
"""

import os
import re
import sys
from itertools import islice
from typing import Any, Optional

PATTERN = r"(?s).*fall(ing|s)? ?back.*CPU"
_FALLBACK = re.compile(PATTERN, re.IGNORECASE)
_OPERATOR = re.compile(r"operator '([\w:.]{1,100})'")
_FUNCTION = re.compile(r"(\w{1,60}): MPS implementation")
_MOST_TEXT = 200
_MOST_LOOKED_AT = 1000
# Less than a microsecond each; the end of a host may cost 2 ms in all. A warning with a number in
# its text is noted anew each time, so there may be any number of notes.
_MOST_MODULES = 4000
_MOST_NOTES = 1000


def is_fallback(text: str) -> bool:
    return _FALLBACK.match(text) is not None


def name_operation(text: str) -> str:
    """The operator in the warning, or what the warning says where it names none."""
    found = _OPERATOR.search(text) or _FUNCTION.match(text)
    return found[1] if found else text.partition(" (Triggered")[0][:_MOST_TEXT]


def find_first() -> "Optional[list[str]]":
    """The operation that torch warned of and its line; None: it warned of none, as far as is noted.

    Only for the main thread at its end: nothing here may be the last to hold a module.
    """
    # A module that is loaded late would be loaded by any other way to read it.
    read = object.__getattribute__
    left = _MOST_NOTES
    for module in list(sys.modules.values())[:_MOST_MODULES]:
        try:
            registry = read(module, "__dict__").get("__warningregistry__")
            if type(registry) is not dict:
                continue
            found = _find_in(registry, left)
            left = max(0, left - len(registry))
        except Exception:  # noqa: BLE001, S112 - anything may be in sys.modules
            continue
        if found is not None:
            text, line = found
            file = _find_file(read(module, "__dict__"))
            return [name_operation(text), _say_place(file, line)]
    return None


def _find_in(registry: "dict[Any, Any]", most: int) -> "Optional[tuple[str, int]]":
    """Keys are (text, category, line), and "version"."""
    for key in list(islice(registry, most)):
        if type(key) is not tuple or len(key) != 3:
            continue
        text, _, line = key
        if type(text) is not str or type(line) is not int:
            continue
        start = text[:_MOST_LOOKED_AT]
        if "MPS" in start and is_fallback(start):
            return start, line
    return None


def _find_file(names: "dict[str, Any]") -> Any:
    """Python removes the main script's __file__ before its atexit callbacks run."""
    return names.get("__file__") or getattr(names.get("__loader__"), "path", None)


def _say_place(file: Any, line: int) -> str:
    return f"{os.path.abspath(file)[-_MOST_TEXT:]}:{line}" if type(file) is str else ""
