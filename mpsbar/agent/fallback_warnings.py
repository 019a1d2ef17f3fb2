"""Parses torch's warnings about CPU fallbacks, and finds the first one of this process.

torch warns once in a process for all operations together. Python notes a warning that it has shown
in the module it came from: there the first can be read at the end, with no hook in the host.
"""

import gc
import os
import re
import sys
from itertools import islice
from time import thread_time
from typing import Any, Optional, Union

PATTERN = r"(?s).*fall(ing|s)? ?back.*CPU"
_FALLBACK = re.compile(PATTERN, re.IGNORECASE)
_OPERATOR = re.compile(r"operator '([\w:.]{1,100})'")
_FUNCTION = re.compile(r"(\w{1,60}): MPS implementation")
_MAX_TEXT = 200
_MAX_LOOKED_AT = 1000
# The end of a host may cost 2 ms, of which the rest of the record takes one. A module that was not
# used for long takes 0.6 µs, because it is in no cache; to ask the clock takes about as much.
MAX_SECONDS = 0.00075  # of CPU time
_MODULES_AT_ONCE = 50
# A warning with a number in its text is noted anew each time, so there may be any number of notes.
_MAX_NOTES = 1000
CUT = "cut"
_NOTES = "__warningregistry__"
# Where an operation is called most often; torch's other modules are older than the host's own.
_FIRST = (
    "__main__", "torch.functional", "torch._tensor", "torch.autograd", "torch.autograd.graph",
    "torch.nn.functional", "torch.nn.init", "torch.nn.utils.clip_grad", "torch.utils.checkpoint",
    *map("torch.nn.modules.{}".format, (
        "activation", "batchnorm", "conv", "distance", "dropout", "flatten", "fold", "linear",
        "loss", "normalization", "padding", "pooling", "rnn", "sparse", "transformer", "upsampling",
    )),
    *map("torch.optim.{}".format, ("adam", "adamw", "sgd", "lbfgs", "rmsprop", "optimizer")),
)  # fmt: skip


def is_fallback(text: str) -> bool:
    return _FALLBACK.match(text) is not None


def name_operation(text: str) -> str:
    """Returns the operator that the warning names, else the warning's own text."""
    found = _OPERATOR.search(text) or _FUNCTION.match(text)
    return found[1] if found else text.partition(" (Triggered")[0][:_MAX_TEXT]


def find_first() -> "Union[list[str], str, None]":
    """Returns the operation that torch warned of first, and its line.

    Returns None if no warning is noted, and CUT if there were more modules than a host that exits
    has time for. Only for the main thread at its end: the last reference to a module may be dropped
    here.
    """
    end = thread_time() + MAX_SECONDS
    notes = _MAX_NOTES
    newest = reversed(sys.modules.values())
    modules = [*map(sys.modules.get, _FIRST), *islice(newest, _MODULES_AT_ONCE)]
    while modules:
        # No attribute of a module is asked for: one that is loaded late would be loaded by that.
        for names in gc.get_referents(*modules):
            if type(names) is not dict or _NOTES not in names:
                continue
            registry = names[_NOTES]
            if type(registry) is not dict:
                continue
            found = _find_in(registry, notes)
            if found is not None:
                text, line = found
                return [name_operation(text), _say_place(_find_file(names), line)]
            notes -= len(registry)
            if notes < 0:
                return CUT
        modules = list(islice(newest, _MODULES_AT_ONCE))
        if modules and thread_time() > end:
            return CUT
    return None


def _find_in(registry: "dict[Any, Any]", most: int) -> "Optional[tuple[str, int]]":
    """Returns text and line of a fallback; keys are (text, category, line), and "version"."""
    for key in list(islice(registry, most)):
        if type(key) is not tuple or len(key) != 3:
            continue
        text, _, line = key
        if type(text) is not str or type(line) is not int:
            continue
        start = text[:_MAX_LOOKED_AT]
        if "MPS" in start and is_fallback(start):
            return start, line
    return None


def _find_file(names: "dict[str, Any]") -> Any:
    """Returns a module's file. Python removes the main script's __file__ before the end."""
    return names.get("__file__") or getattr(names.get("__loader__"), "path", None)


def _say_place(file: Any, line: int) -> str:
    return f"{os.path.abspath(file)[-_MAX_TEXT:]}:{line}" if type(file) is str else ""
