"""Finds the instructions that lead to the call that a frame is inside, by its bytecode. Pure.

A call in C has no frame of its own: all that shows it is the frame that made it, which stands at
its CALL. From there this goes back to the first instruction of the same expression. Only straight
code is understood: a jump into or out of it, or an instruction that is not in the tables below,
and there is no answer. Written for Python 3.9 to 3.14.
"""

import opcode
import sys
from types import CodeType
from typing import Optional

_CACHE = opcode.opmap.get("CACHE", -1)
_EXTENDED_ARG = opcode.opmap["EXTENDED_ARG"]
_JUMPS = frozenset(opcode.hasjrel) | frozenset(opcode.hasjabs)
_VERSION = sys.version_info[:2]
_NEWEST = (3, 14)  # each version has other bytecode
# Expressions are short; a longer one is not worth a longer look.
_MAX_INSTRUCTIONS = 200

CALLS = frozenset((
    "CALL", "CALL_KW", "CALL_FUNCTION", "CALL_METHOD", "CALL_FUNCTION_KW", "CALL_FUNCTION_EX",
))  # fmt: skip
# `with lock:` calls __enter__ in these; 3.14 has a LOAD_SPECIAL and a CALL.
WITHS = frozenset(("SETUP_WITH", "BEFORE_WITH"))
_BINARY = ("BINARY_", "INPLACE_")  # up to 3.10 one each for +, -, …
_EFFECTS = {
    "NOP": (0, 0),
    "PRECALL": (0, 0),
    "KW_NAMES": (0, 0),
    "NOT_TAKEN": (0, 0),
    "PUSH_NULL": (0, 1),
    "LOAD_CONST": (0, 1),
    "LOAD_SMALL_INT": (0, 1),
    "LOAD_FAST": (0, 1),
    "LOAD_FAST_CHECK": (0, 1),
    "LOAD_FAST_BORROW": (0, 1),
    "LOAD_FAST_LOAD_FAST": (0, 2),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": (0, 2),
    "LOAD_DEREF": (0, 1),
    "LOAD_NAME": (0, 1),
    "LOAD_METHOD": (1, 2),
    "UNARY_NEGATIVE": (1, 1),
    "COMPARE_OP": (2, 1),
    "IS_OP": (2, 1),
    "CONTAINS_OP": (2, 1),
    "BINARY_OP": (2, 1),
    "BINARY_SLICE": (3, 1),
    "FORMAT_SIMPLE": (1, 1),
    "FORMAT_WITH_SPEC": (2, 1),
    "GET_ITER": (1, 1),
}


class Instruction:
    """One instruction of a function's bytecode."""

    __slots__ = ("argument", "name", "offset")

    def __init__(self, offset: int, name: str, argument: int) -> None:
        self.offset = offset
        self.name = name
        self.argument = argument


CallSite = tuple[Instruction, ...]


def find_call_site(code: CodeType, offset: int) -> Optional[CallSite]:
    """Returns the instructions of the expression whose call is at `offset` (a frame's f_lasti), or
    None.

    The last of them is the one that calls.
    """
    raw = code.co_code
    if _VERSION > _NEWEST or not 0 <= offset < len(raw) or offset % 2:
        return None
    offset, last = _find_last(raw, offset)
    if last.name in CALLS:
        needed = _call_effect(last.name, last.argument)[0]
    elif last.name in WITHS or last.name == "FOR_ITER":
        needed = 1
    else:
        return None
    reversed_site = _go_back(raw, offset, needed)
    if not reversed_site:
        return None
    if _is_entered(raw, reversed_site[-1].offset, last.offset, last.name == "FOR_ITER"):
        return None
    return (*reversed(reversed_site), last)


def _find_last(raw: bytes, offset: int) -> "tuple[int, Instruction]":
    """Returns the instruction that calls, and the offset before which its arguments were pushed."""
    last = _decode(raw, offset)
    if last.name == "PRECALL":  # 3.11 calls some functions there already, and skips the CALL
        offset = _next(raw, offset)
        last = _decode(raw, offset)
    if last.name == "CALL" and last.argument == 0 and _VERSION >= (3, 14):
        return _find_with(raw, last)
    return offset, last


def _go_back(raw: bytes, offset: int, needed: int) -> "list[Instruction]":
    """Returns the instructions that have put `needed` values on the stack, the last one first.

    The list is empty if they are not known.
    """
    instructions: list[Instruction] = []
    while needed > 0:
        offset = _previous(raw, offset)
        if offset < 0 or len(instructions) > _MAX_INSTRUCTIONS:
            return []
        instruction = _decode(raw, offset)
        effect = effect_of(instruction)
        # One that leaves more than is needed belongs to something else.
        if effect is None or effect[1] > needed:
            return []
        needed += effect[0] - effect[1]
        instructions.append(instruction)
    return instructions


def _find_with(raw: bytes, call: Instruction) -> "tuple[int, Instruction]":
    """Finds the instructions by which 3.14 enters a `with`; together they count as one."""
    offset = call.offset
    for name in ("LOAD_SPECIAL", "SWAP", "SWAP", "LOAD_SPECIAL", "COPY"):
        offset = _previous(raw, offset)
        if offset < 0 or opcode.opname[raw[offset]] != name:
            return call.offset, call
    return offset, Instruction(call.offset, "BEFORE_WITH", 0)


def effect_of(instruction: Instruction) -> "Optional[tuple[int, int]]":
    """Returns the instruction's stack effect (popped, pushed), or None if unknown."""
    name, argument = instruction.name, instruction.argument
    fixed = _EFFECTS.get(name)
    if fixed is not None:
        return fixed
    if name == "LOAD_GLOBAL":
        return 0, 1 + (argument & 1 if _VERSION >= (3, 11) else 0)
    if name == "LOAD_ATTR":
        return 1, 1 + (argument & 1 if _VERSION >= (3, 12) else 0)
    if name in CALLS:
        return _call_effect(name, argument)
    if name.startswith("BUILD_"):
        return _build_effect(name, argument)
    if name == "FORMAT_VALUE":
        return 1 + bool(argument & 4), 1
    is_binary = name.startswith(_BINARY) or (name == "DICT_MERGE" and argument == 1)
    return (2, 1) if is_binary else None


def _build_effect(name: str, argument: int) -> "Optional[tuple[int, int]]":
    if name in ("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_SLICE"):
        return argument, 1
    return (2 * argument, 1) if name == "BUILD_MAP" else None


def _call_effect(name: str, argument: int) -> "tuple[int, int]":
    if name == "CALL_FUNCTION_EX":
        if _VERSION >= (3, 14):
            return 4, 1
        return 2 + (argument & 1) + (_VERSION >= (3, 11)), 1
    if name == "CALL_FUNCTION":
        return argument + 1, 1
    # CALL_FUNCTION_KW: the names on top; CALL, CALL_METHOD: a NULL or self; CALL_KW: both.
    return argument + (3 if name == "CALL_KW" else 2), 1


def _decode(raw: bytes, offset: int) -> Instruction:
    """Returns the instruction at `offset`, with the EXTENDED_ARGs that stand before it."""
    argument, shift, before = raw[offset + 1], 8, offset - 2
    while before >= 0 and raw[before] == _EXTENDED_ARG:
        argument |= raw[before + 1] << shift
        shift, before = shift + 8, before - 2
    return Instruction(offset, opcode.opname[raw[offset]], argument)


def _previous(raw: bytes, offset: int) -> int:
    offset -= 2
    while offset >= 0 and raw[offset] in (_CACHE, _EXTENDED_ARG):
        offset -= 2
    return offset


def _next(raw: bytes, offset: int) -> int:
    offset += 2
    while offset < len(raw) - 2 and raw[offset] in (_CACHE, _EXTENDED_ARG):
        offset += 2
    return offset


def _is_entered(raw: bytes, first: int, last: int, is_loop: bool) -> bool:
    """Returns whether a jump leads between the instructions from `first` to `last`.

    A `for` loop comes back to its FOR_ITER: the iterator is still the one it began with.
    """
    inside = range(first + 2, last if is_loop else last + 2)
    return any(_target(raw, at) in inside for at in range(0, len(raw), 2) if raw[at] in _JUMPS)


def _target(raw: bytes, offset: int) -> int:
    instruction = _decode(raw, offset)
    name, argument = instruction.name, instruction.argument
    step = argument if _VERSION < (3, 10) else 2 * argument
    if raw[offset] in opcode.hasjabs:
        return step
    after = offset + 2
    if _VERSION >= (3, 12):  # counted from behind the caches
        while after < len(raw) and raw[after] == _CACHE:
            after += 2
    return after - step if "BACKWARD" in name else after + step
