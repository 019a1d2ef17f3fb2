"""What `mpsbar run CMD …` changes for a command: its environment, and nothing else. Pure."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpsbar.agent import places

SITE = Path(places.__file__).parent / "site"


def build_environment(environ: Mapping[str, str], site: Path = SITE) -> dict[str, str]:
    """PYTHONPATH begins with our sitecustomize, so that every Python below starts with it."""
    paths = [str(site), *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def why_not_connected(command: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """The reason why this command will run but not be seen, where that can be told beforehand."""
    if environ.get("MPSBAR_DISABLE", "") not in ("", "0"):
        return "MPSBAR_DISABLE is set"
    if not re.fullmatch(r"python[\d.]*t?", Path(command[0]).name):
        return None
    flag = _isolating_flag(command[1:])
    if flag is None:
        return None
    return f"python {flag} ignores PYTHONPATH; mpsbar enable --python {command[0]} works there too"


def _isolating_flag(arguments: Sequence[str]) -> str | None:
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif not argument.startswith("-") or argument in ("-c", "-m", "-", "--"):
            return None
        elif argument in ("-W", "-X", "--check-hash-based-pycs"):
            skip = True
        elif not argument.startswith("--") and (found := re.match(r"-[a-zA-Z]*?([IES])", argument)):
            return f"-{found[1]}"
    return None
