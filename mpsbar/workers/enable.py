"""Installs the agent's start-up file into an environment, checks that it answers, removes it again.

It is a small distribution of its own, with metadata and RECORD: pip and uv see it and can remove
it. Its files are named mpsbar_agent, never mpsbar: an installation of mpsbar can come and go beside
it, and `import mpsbar` finds ours only where there is no other (find_mpsbar in startup_hook).
"""

import base64
import contextlib
import hashlib
import logging
import os
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mpsbar.agent import __version__, user_folders
from mpsbar.agent.frameworks import FRAMEWORKS, join_labels
from mpsbar.core.actions import Connected, ConnectState
from mpsbar.core.errors import reason_of
from mpsbar.language import _
from mpsbar.system.files import read_bytes, replace_file
from mpsbar.system.ownership import NotTrustedError, require_safe
from mpsbar.system.paths import enabled_file
from mpsbar.system.start_python import end_with_children, start_python
from mpsbar.workers.connection import NotListeningError, WorkerConnection
from mpsbar.workers.environments import (
    ASK_SECONDS,
    Environment,
    UnusablePythonError,
    forget_enabled,
    read_enabled,
    read_environment,
    remember_enabled,
)
from mpsbar.workers.run import read_agent_files

_log = logging.getLogger("mpsbar")

START = "_mpsbar_start"
PACKAGE = "mpsbar_agent"
_AGENT = Path(user_folders.__file__).parent
# What every start of Python compiles and runs, hence the brevity: no file is opened before a
# framework or mpsbar is looked for, and what is done then is a text until then: compiling it would
# be most of the cost. A line of a .pth must begin with import, and names that it assigns are not
# seen from inside a function.
_NAMES = tuple(framework.module for framework in FRAMEWORKS)
_FIND = f"""\
try:
 import {START}
 found = {START}.find_spec(*asked)
except Exception: found = None"""
_PTH = (
    "import sys; w = lambda name, path=None, target=None: "
    f"(d := {{'asked': (name, path, target)}}, exec({_FIND!r}, d))[0]['found'] "
    f"if name in {(*_NAMES, 'mpsbar')!r} else None; "
    "w.find_spec = w; w.watches_for_mpsbar = 1; sys.meta_path.insert(0, w)\n"
)
_METADATA = f"""\
Metadata-Version: 2.1
Name: mpsbar-agent
Version: {__version__}
Summary: Shows this environment's {join_labels("and")} processes in mpsbar. Made by mpsbar enable.
"""
_WHEEL = "Wheel-Version: 1.0\nGenerator: mpsbar\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
# Runs in the Python that was just enabled.
_START_AGENT = """
import sys
if any(hasattr(finder, "watches_for_mpsbar") for finder in sys.meta_path):
    import _mpsbar_start
    _mpsbar_start.Finder(None).start()  # as if torch had been imported
    sys.stdin.read()
"""

Files = dict[str, bytes]
_MAX_BYTES = 1 << 20


def enable(environment: Environment) -> bool:
    """Writes the files; False if they were there already. UnusablePythonError if it cannot."""
    files = build_files(environment)
    site = environment.site
    _refuse_links(site, files)
    if all(_read(site / name) == content for name, content in files.items()):
        return False
    try:
        require_safe(site)
        old = set(_recorded(site))
        _replace_all(site, files)
        _remove(site, old - set(files))
    except OSError as problem:
        reason = reason_of(problem)
        raise UnusablePythonError(
            _("couldn't write to {folder}: {problem}").format(folder=site, problem=reason)
        ) from None
    _clear_hidden_flag(site / "mpsbar-agent.pth")
    return True


def _replace_all(site: Path, files: Files) -> None:
    """Writes all files or none: after an OSError an agent that worked there still does.

    The new files and copies of the old ones are written to a folder beside them first. What may
    fail after that is a rename, and a full disk cannot keep the old ones from being put back.
    """
    site.mkdir(mode=0o755, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=".mpsbar-agent-", dir=site, ignore_cleanup_errors=True
    ) as folder:
        new, old = Path(folder, "new"), Path(folder, "old")
        before = {name: content for name in files if (content := _read(site / name)) is not None}
        for beside, contents in ((new, files), (old, before)):
            for name, content in contents.items():
                # Every start of this Python runs these: others must not be able to write to them,
                # whatever the umask.
                replace_file(beside / name, content, mode=0o644)
        replaced: list[str] = []
        try:
            for name in files:
                path = site / name
                path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                # A link is replaced, for uv may have made it into its cache.
                (new / name).replace(path)
                replaced.append(name)
        except BaseException:
            with contextlib.suppress(OSError):
                for name in before.keys() & set(replaced):
                    (old / name).replace(site / name)
                _remove(site, set(replaced) - before.keys())
            raise


def disable(environment: Environment) -> bool:
    """Removes every file we made; False if there was none."""
    try:
        names = _recorded(environment.site)
        _remove(environment.site, set(names))
    except OSError as problem:
        reason = reason_of(problem)
        raise UnusablePythonError(
            _("couldn't change {folder}: {problem}").format(folder=environment.site, problem=reason)
        ) from None
    return bool(names)


def read_version(site: Path) -> str | None:
    """Returns the version of the agent that is enabled there, or None if none is."""
    found = sorted(site.glob(f"{PACKAGE}-*.dist-info"))
    return found[-1].name.removeprefix(f"{PACKAGE}-").removesuffix(".dist-info") if found else None


def find_enabled(python: str) -> Environment | None:
    """Returns what an earlier enable left in the environment of `python`, or None if nothing is
    found.

    By its files alone: to run a Python in Documents makes macOS ask whether mpsbar may.
    """
    prefix = Path(python).parent.parent
    for site in sorted(prefix.glob("lib/python3.*/site-packages")):
        minor = site.parent.name.removeprefix("python3.").rstrip("t")
        if read_version(site) is not None and minor.isdigit():
            has_copy = any(name.startswith(f"{PACKAGE}/") for name in _recorded(site))
            return Environment(python, (3, int(minor)), str(prefix), site, not has_copy)
    return None


def build_files(environment: Environment) -> Files:
    """Builds the files that `enable` adds to an environment, RECORD last."""
    hook = (_AGENT / "startup_hook.py").read_bytes() + f"\n\nNAMES = {_NAMES}\n".encode()
    files: Files = {f"{START}.py": hook}
    if not environment.has_mpsbar:
        for path, content in read_agent_files().items():
            if path.parts[0] != "site":
                files[f"{PACKAGE}/{path.as_posix()}"] = content
    files["mpsbar-agent.pth"] = _PTH.encode()
    if environment.version >= (3, 15):  # PEP 829: it replaces the line of the .pth there
        files["mpsbar-agent.start"] = f"{START}:install\n".encode()
    info = f"{PACKAGE}-{__version__}.dist-info"
    files[f"{info}/METADATA"] = _METADATA.encode()
    files[f"{info}/WHEEL"] = _WHEEL.encode()
    files[f"{info}/INSTALLER"] = b"mpsbar\n"
    files[f"{info}/RECORD"] = _list_files(files, f"{info}/RECORD").encode()
    return files


def _list_files(files: Files, record: str) -> str:
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    return "".join([*lines, f"{record},,\n"])


def _recorded(site: Path) -> list[str]:
    """Returns the files of an earlier enable, as its own RECORD lists them; nothing outside of
    `site`.
    """
    names = []
    for info in site.glob(f"{PACKAGE}-*.dist-info"):
        if info.is_symlink():
            continue  # what it leads to is not ours
        try:
            record = read_bytes(info / "RECORD", _MAX_BYTES)
        except FileNotFoundError:
            continue
        for line in record.decode("utf-8", "replace").splitlines():
            name = line.split(",")[0]
            is_ours = name.startswith((START, f"{PACKAGE}/", f"{PACKAGE}-", "mpsbar-agent."))
            if is_ours and ".." not in Path(name).parts:
                names.append(name)
    return names


def _read(path: Path) -> bytes | None:
    try:
        return read_bytes(path, _MAX_BYTES)
    except OSError:
        return None


def _find_link(site: Path, folder: Path) -> Path | None:
    """Returns the first link among the folders below `site`."""
    below = [folder, *folder.parents]
    return next((path for path in below if site in path.parents and path.is_symlink()), None)


def _refuse_links(site: Path, names: Iterable[str]) -> None:
    for name in names:
        if link := _find_link(site, (site / name).parent):
            raise UnusablePythonError(
                _("{link} is a link to another folder: remove it first").format(link=link)
            )


def _remove(site: Path, names: set[str]) -> None:
    """Removes the files, what Python compiled from them, and the folders that are then empty."""
    folders = set()
    for name in names:
        path = site / name
        if _find_link(site, path.parent) is not None:
            continue  # what it leads to is not ours
        compiled = path.parent / "__pycache__"
        caches = [] if compiled.is_symlink() else compiled.glob(f"{path.stem}.*.pyc")
        for old in [path, *caches]:
            old.unlink(missing_ok=True)
        folders |= {compiled, *(folder for folder in path.parents if site in folder.parents)}
    for folder in sorted(folders - {site}, key=lambda folder: -len(folder.parts)):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _clear_hidden_flag(path: Path) -> None:
    """Clears macOS's hidden flag, which a file in a hidden folder may have, and `site` skips it
    then.
    """
    hidden = getattr(stat, "UF_HIDDEN", 0)
    flags = getattr(path.stat(), "st_flags", 0)
    if flags & hidden:
        os.chflags(path, flags & ~hidden)  # type: ignore[attr-defined,unused-ignore]


def connect(python: str) -> Connected:
    """Enables this Python, remembers it, and checks that its agent answers. Never raises."""
    try:
        environment = read_environment(python)
        is_new = _enable_and_remember(environment)
        answer = read_answer(environment, dict(os.environ)) if is_new else None
    except UnusablePythonError as problem:
        return Connected(python, "refused", error=str(problem))
    if not is_new:
        state: ConnectState = "enabled_before"
    else:
        state = "no_answer" if answer is None else "enabled"
    return Connected(
        python, state, prefix=environment.prefix, has_framework=environment.has_framework
    )


def _enable_and_remember(environment: Environment) -> bool:
    """Enables a Python after it was remembered: what is on no list, `mpsbar disable --all` would
    not remove.
    """
    python = environment.python
    was_known = python in read_enabled()
    reason = remember_enabled(python)
    if reason is not None:
        text = _("couldn't add it to {file}, the list of what is enabled: {problem}")
        raise UnusablePythonError(text.format(file=enabled_file(), problem=reason))
    try:
        return enable(environment)
    except UnusablePythonError:
        if not was_known:
            forget_enabled(python)
        raise


def read_answer(environment: Environment, environ: dict[str, str]) -> str | None:
    """Returns the version of the agent that answered, None if none did.

    Raises UnusablePythonError if this Python was not run.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="mpsbar-", ignore_cleanup_errors=True) as folder:
            return _try_agent(environment, environ, Path(folder, "run"))
    except (OSError, ValueError) as problem:  # no room, no process, no folder for temporary files
        _log.warning("the trial of %s failed: %s", environment.python, problem)
        return None


def _try_agent(environment: Environment, environ: dict[str, str], run_dir: Path) -> str | None:
    clean = {k: v for k, v in environ.items() if k not in ("MPSBAR_DISABLE", "PYTHONPATH")}
    process = _start(environment.python, clean | {"MPSBAR_RUN_DIR": str(run_dir)})
    try:
        return _wait(run_dir, process, time.monotonic() + ASK_SECONDS)
    finally:
        end_with_children(process)
        assert process.stdin is not None
        process.stdin.close()


def _start(python: str, environ: dict[str, str]) -> "subprocess.Popen[bytes]":
    try:
        return start_python(
            python, ["-c", _START_AGENT], environ,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except NotTrustedError as problem:  # somebody else can change it by now
        raise UnusablePythonError(
            _("{python} was not run: {problem}").format(python=python, problem=problem)
        ) from None


def _wait(run_dir: Path, process: "subprocess.Popen[bytes]", deadline: float) -> str | None:
    while time.monotonic() < deadline and process.poll() is None:
        for path in run_dir.glob("*.sock"):
            hello = _ask(path, deadline)
            return str(hello["agent"]) if isinstance(hello, dict) and "agent" in hello else None
        time.sleep(0.02)
    return None


def _ask(path: Path, deadline: float) -> Any:
    try:
        connection = WorkerConnection(str(path))
    except (OSError, NotListeningError):
        return None
    try:
        connection.ask("hello")
        while time.monotonic() < deadline:
            connection.send()
            if answers := connection.receive():
                return answers[0][1]
            time.sleep(0.01)
    except OSError:
        pass
    finally:
        connection.close()
    return None
