"""Put the agent's start-up into an environment, and take it out without a trace.

It is a small distribution of its own, with metadata and RECORD: pip and uv see it and can remove
it.
"""

import base64
import contextlib
import hashlib
import os
import stat
from pathlib import Path

from mpsbar.agent import __version__, places
from mpsbar.client.environment import Environment, EnvironmentProblem

START = "_mpsbar_start"
PACKAGE = "mpsbar_agent"
_AGENT = Path(places.__file__).parent
# What every start of Python compiles and runs, hence the brevity: no file is opened before torch or
# MLX is looked for. A line of a .pth must begin with import, and site would print what it raises.
_WATCH = f"""\
def w(name, path=None, target=None):
 if name in ('torch', 'mlx.core'):
  try:
   import {START}
   return {START}.find_spec(name, path, target)
  except Exception: pass
w.find_spec = w
w.watches_for_mpsbar = 1
sys.meta_path.insert(0, w)"""
_PTH = f"import sys; exec({_WATCH!r})\n"
_METADATA = f"""\
Metadata-Version: 2.1
Name: mpsbar-agent
Version: {__version__}
Summary: Shows this environment's PyTorch and MLX processes in mpsbar. Made by mpsbar enable.
"""
_WHEEL = "Wheel-Version: 1.0\nGenerator: mpsbar\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

Files = dict[str, bytes]


def enable(environment: Environment) -> bool:
    """Make it so; False if it was so already. EnvironmentProblem if it cannot be written."""
    files = build_files(environment)
    site = environment.site
    if all(_read(site / name) == content for name, content in files.items()):
        return False
    try:
        old = set(_recorded(site))
        for name, content in files.items():
            _write(site / name, content)
        _remove(site, old - set(files))
    except OSError as problem:
        with contextlib.suppress(OSError):
            _remove(site, set(files))
        reason = problem.strerror or problem
        raise EnvironmentProblem(f"{site} cannot be written: {reason}") from None
    _show(site / "mpsbar-agent.pth")
    return True


def disable(environment: Environment) -> bool:
    """Remove every file we made; False if there was none."""
    names = _recorded(environment.site)
    try:
        _remove(environment.site, set(names))
    except OSError as problem:
        reason = problem.strerror or problem
        raise EnvironmentProblem(f"{environment.site} cannot be changed: {reason}") from None
    return bool(names)


def read_version(site: Path) -> str | None:
    """The version of the agent that is enabled there, None if none is."""
    found = sorted(site.glob(f"{PACKAGE}-*.dist-info"))
    return found[-1].name.removeprefix(f"{PACKAGE}-").removesuffix(".dist-info") if found else None


def build_files(environment: Environment) -> Files:
    """What an enabled environment has more than before, RECORD last."""
    files: Files = {f"{START}.py": (_AGENT / "hook.py").read_bytes()}
    if not environment.has_mpsbar:
        for path in sorted(_AGENT.rglob("*.py")):
            name = path.relative_to(_AGENT).as_posix()
            if not name.startswith("site/"):
                files[f"{PACKAGE}/{name}"] = path.read_bytes()
    files["mpsbar-agent.pth"] = _PTH.encode()
    if environment.version >= (3, 15):  # PEP 829: it replaces the line of the .pth there
        files["mpsbar-agent.start"] = f"{START}:install\n".encode()
    info = f"{PACKAGE}-{__version__}.dist-info"
    files[f"{info}/METADATA"] = _METADATA.encode()
    files[f"{info}/WHEEL"] = _WHEEL.encode()
    files[f"{info}/INSTALLER"] = b"mpsbar\n"
    files[f"{info}/RECORD"] = _build_record(files, f"{info}/RECORD").encode()
    return files


def _build_record(files: Files, record: str) -> str:
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    return "".join([*lines, f"{record},,\n"])


def _recorded(site: Path) -> list[str]:
    """The files of an earlier enable, as its own RECORD lists them; nothing outside of `site`."""
    names = []
    for record in site.glob(f"{PACKAGE}-*.dist-info/RECORD"):
        for line in record.read_text(encoding="utf-8").splitlines():
            name = line.split(",")[0]
            ours = name.startswith((START, f"{PACKAGE}/", f"{PACKAGE}-", "mpsbar-agent."))
            if ours and ".." not in Path(name).parts:
                names.append(name)
    return names


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _remove(site: Path, names: set[str]) -> None:
    """The files, what Python compiled from them, and the folders that are then empty."""
    folders = set()
    for name in names:
        path = site / name
        compiled = path.parent / "__pycache__"
        for old in [path, *compiled.glob(f"{path.stem}.*.pyc")]:
            old.unlink(missing_ok=True)
        folders |= {compiled, path.parent}
    for folder in sorted(folders - {site}, key=lambda folder: -len(folder.parts)):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _show(path: Path) -> None:
    """On macOS a file in a hidden folder may carry the hidden flag, and site skips it then."""
    hidden = getattr(stat, "UF_HIDDEN", 0)
    flags = getattr(path.stat(), "st_flags", 0)
    if flags & hidden:
        os.chflags(path, flags & ~hidden)  # type: ignore[attr-defined,unused-ignore]
