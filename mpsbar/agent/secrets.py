"""Takes passwords, keys and the home folder out of what is shown, recorded or pasted. Pure.

Arguments and titles of processes, variables and error texts may hold them. What comes after the
first option of a command is left out; in all else, what has the shape of a key is replaced.
In the agent, as it leaves a record of its process; the monitor uses it too.
"""

import functools
import re
from typing import Optional

MASK = "***"
LEFT_OUT = "…"
# Options of python: short ones may be joined, and the last may have its value right behind it.
_FLAGS = "-[bBdEhiIOPqRsStuvVx3?]*"
_CODE = _FLAGS + "c.*"
_MODULE = _FLAGS + "m(.*)"
_WITH_VALUE = _FLAGS + "[WX]|--check-hash-based-pycs"
_KEYWORD = (
    r"pass(?:word|wd|phrase)?|secret|token|api[-_]?key|access[-_]?key|auth|credentials?|cookie"
)
# Prefixes that their issuers chose so that such keys can be found.
_ISSUED = (
    r"(?:\b|(?<=_))(?:[spr]k[-_][\w-]{8,}|hf_\w{8,}|gh[a-z]_\w{16,}|github_pat_\w{16,}"
    r"|glpat-[\w-]{12,}|xox[a-z]-[\w-]{8,}|A[KS]IA[0-9A-Z]{12,}|AIza[\w-]{20,}|ya29\.[\w.-]{8,}"
    r"|eyJ[\w-]{8,}(?:\.[\w-]*)*|npm_\w{16,}|pypi-[\w-]{16,}|dckr_pat_[\w-]{12,}"
    r"|SG\.[\w-]{8,}\.[\w-]{8,}|r8_\w{16,}|nvapi-[\w-]{16,})"
)
_NAMED = (
    r"-----BEGIN [A-Z ]*KEY-----.*"
    r"|(?<=://)[^/\s@]+(?=@)"  # user:password@host
    r"|(?i:\b(?:bearer|basic) )[\w.+/=~-]{6,}"
    rf"|(?i:(?<=[-_\W])|\b)(?i:{_KEYWORD})(?:[=:]|%3[AaDd])\S+"
)
_RANDOM = (
    r"(?<![^\W_])[0-9a-fA-F]{32,}\b"
    # Random letters and digits; a word of a person's hardly has all three kinds.
    r"|(?<![^\W_])(?=[a-z0-9+]*[A-Z])(?=[A-Z0-9+]*[a-z])(?=[A-Za-z+]*\d)[A-Za-z0-9+]{24,}={0,2}"
)
# A text without any of these, in small letters, has no such shape. No i in what may be written in
# small or capital letters: to re the Turkish ones are the same letter, to casefold() they are not.
_IN_ISSUED = (
    "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "hf_", *(f"gh{chr(a)}_" for a in range(97, 123)),
    "github_pat_", "glpat-", "xox", "akia", "asia", "aiza", "ya29.", "eyj", "npm_", "pypi-",
    "dckr_pat_", "sg.", "r8_", "nvapi-",
)  # fmt: skip
_IN_NAMED = ("-----begin ", "://", "bearer ", "bas")
_KEYWORD_PARTS = ("pass", "secret", "token", "key", "auth", "credent", "cook")
_ASSIGNING = frozenset("=:%")
_MIN_RANDOM = 24
_TO_WORDS = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) == "+")}


def mask(text: str) -> str:
    """Returns the text with *** for whatever looks like a password or a key."""
    kinds = _find_kinds(text)
    return _compile(kinds).sub(MASK, text) if kinds else text


def _find_kinds(text: str) -> "tuple[str, ...]":
    """Returns the shapes that may be in it. Most texts have none, and to compile all takes
    milliseconds, which a host at its end would wait for.
    """
    small = text.casefold()
    kinds = []
    if any(part in small for part in _IN_ISSUED):
        kinds.append(_ISSUED)
    parts = _IN_NAMED if _ASSIGNING.isdisjoint(text) else (*_IN_NAMED, *_KEYWORD_PARTS)
    if any(part in small for part in parts):
        kinds.append(_NAMED)
    if any(len(word) >= _MIN_RANDOM for word in text.translate(_TO_WORDS).split()):
        kinds.append(_RANDOM)
    return tuple(kinds)


@functools.lru_cache(maxsize=8)  # as many as there are
def _compile(kinds: "tuple[str, ...]") -> "re.Pattern[str]":
    return re.compile("|".join(kinds), re.DOTALL)


def is_code(argument: str) -> bool:
    """Returns whether python takes it for -c: the code follows, or is in it."""
    return re.fullmatch(_CODE, argument, re.DOTALL) is not None


def has_value(argument: str) -> bool:
    """Returns whether it is an option of python that takes the next argument."""
    return re.fullmatch(_WITH_VALUE, argument) is not None


def find_module(argument: str) -> "Optional[str]":
    """Returns of -mNAME the name, of -m nothing (it is the next argument), and None for another
    option.
    """
    match = re.fullmatch(_MODULE, argument)
    return None if match is None else match[1]


def shorten_command(command: "tuple[str, ...]") -> "tuple[str, ...]":
    """Keeps python train.py data of python train.py data --key SECRET; code is left out too."""
    kept: list[str] = []
    waits_for_script = True
    arguments = iter(command)
    for argument in arguments:
        if kept and argument.startswith("-"):
            if not waits_for_script or is_code(argument):
                break
            kept.append(mask(argument))
            waits_for_script = not find_module(argument)
            if has_value(argument):
                kept.extend(mask(value) for value in [next(arguments, None)] if value is not None)
            continue
        if kept and "=" in argument:
            break
        waits_for_script = not kept
        kept.append(mask(argument) if kept else shorten_title(argument))
    is_whole = len(kept) == len(command)
    return tuple(kept) if is_whole else (*kept, LEFT_OUT)


def cut_options(title: str) -> str:
    """Keeps the words before the first option or assignment: serve of serve --key SECRET.

    A process may write a title with all of its arguments over the first of them, also one that
    begins with its path. A folder's name may have a dash between two spaces.
    """
    if not any(map(str.isspace, title)):
        return title
    option = r"-\w|--" if title.startswith(("/", "./")) else "-"
    end = re.search(rf"\s(?:{option}|\S*=)", title)
    return title[: end.start()] if end else title


def shorten_home(text: str, home: "Optional[str]", *, anywhere: bool = False) -> str:
    """Writes the home folder as ~ wherever a path begins with it, not in the middle of another.

    `anywhere`: there too, for a record that is kept: `-I/srv/jane` looks like the middle of a path.
    """
    folder = (home or "").rstrip("/")
    if not folder or folder not in text:  # compiled only where it is there: a host at its end waits
        return text
    before = "" if anywhere else r"(?<![\w/.~@+%-])"
    return re.sub(rf"{before}{re.escape(folder)}(?!\.?[\w@+%~-])", "~", text)


def shorten_title(title: str) -> str:
    """Keeps what a title may show: no options, and *** for what looks like a key."""
    return mask(cut_options(title))
