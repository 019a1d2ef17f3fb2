"""What `mpsbar run CMD …` needs: the command's environment, and in the app a copy of the agent.

The copy lies outside the app: other Pythons write their compiled files beside it, which would void
the app's signature; and the app may be replaced by a newer one while a process that runs for days
has yet to import a part of its agent.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpsbar.agent import __version__, user_folders
from mpsbar.agent.language import find_locale_folder
from mpsbar.language import _
from mpsbar.system.files import make_folder, read_bytes
from mpsbar.system.ownership import require_safe
from mpsbar.system.paths import data_folder, is_in_app

_AGENT = Path(user_folders.__file__).parent
SITE = _AGENT / "site"

AgentFiles = dict[Path, bytes]


def build_environment(environ: Mapping[str, str], site: Path = SITE) -> dict[str, str]:
    """Puts our sitecustomize first on PYTHONPATH, so that every child Python starts with it."""
    paths = [str(site), *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def why_not_connected(command: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Returns why this command will run without being connected, if that is known."""
    if environ.get("MPSBAR_DISABLE", "") not in ("", "0"):
        return _("MPSBAR_DISABLE is set")
    if not re.fullmatch(r"python[\d.]*t?", Path(command[0]).name):
        return None
    flag = _isolating_flag(command[1:])
    if flag is None:
        return None
    return _(
        "python {flag} ignores PYTHONPATH; mpsbar enable --python {python} works there too"
    ).format(flag=flag, python=command[0])


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


def read_agent_files() -> AgentFiles:
    """Reads the agent as it is copied, what compare() needs, and the translations of both."""
    files = {p.relative_to(_AGENT): p.read_bytes() for p in sorted(_AGENT.rglob("*.py"))}
    compare, locale = _AGENT.parent / "dtypes" / "compare", Path(find_locale_folder())
    files |= {Path("compare", p.name): p.read_bytes() for p in sorted(compare.glob("*.py"))}
    catalogues = sorted(locale.glob("*/LC_MESSAGES/*.mo"))
    return files | {Path("locale") / p.relative_to(locale): p.read_bytes() for p in catalogues}


def copy_agent(folder: Path) -> Path:
    """Copies the agent into `folder`, once for each version; returns where its sitecustomize is.

    Raises OSError, also if somebody else can change what would be run there.
    """
    files = read_agent_files()
    target = folder / f"agent-{__version__}"
    require_safe(target)
    if not _is_whole(target, files):
        try:
            _write_whole(target, files)
        except OSError:
            if not _is_whole(target, files):  # unless another mpsbar was quicker
                raise
    return target / "site"


def find_site() -> Path:
    """Returns the folder for `build_environment`: in the app that of a copy of the agent.

    Raises OSError as `copy_agent` does.
    """
    return copy_agent(data_folder()) if is_in_app() else SITE


def _is_whole(target: Path, files: AgentFiles) -> bool:
    return all(_is_same(target / name, content) for name, content in files.items())


def _is_same(path: Path, content: bytes) -> bool:
    try:
        return read_bytes(path, len(content)) == content
    except OSError:
        return False


def _write_whole(target: Path, files: AgentFiles) -> None:
    """Writes beside it first: a Python that starts just now finds the old or the new one whole."""
    make_folder(target.parent)
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        for name, content in files.items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            (fresh / name).write_bytes(content)
        if target.exists():
            os.rename(target, fresh / "old")  # noqa: PTH104 - it must not follow
        os.rename(fresh, target)  # noqa: PTH104
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    shutil.rmtree(target / "old", ignore_errors=True)
