"""Starts another Python, unless somebody else can change what it would run.

Its path comes from a file, an agent or another process, and it would run as this user, who may be
root. Every Python that mpsbar starts, except its own, is started here.
"""

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mpsbar.language import _
from mpsbar.system.ownership import NotTrustedError, UnsafePath, find_danger

_MAX_LINKS = 40
_END_SECONDS = 10.0
_MAX_BYTES = 64 * 1024
_LIBRARY = re.compile(r"python3(\.\d+)?t?")
_ZIPPED_LIBRARY = re.compile(r"python3\d*t?\.zip")
_PACKAGES = ("site-packages", "dist-packages")
# What Python runs at its start (.pth, .start) or imports from a folder.
_CODE = (".pth", ".start", ".py", ".pyc", ".so", ".egg", ".zip")
# The program that python3 of a framework build on macOS starts in its own place.
_MAC_APP = "Resources/Python.app/Contents/MacOS/Python"


def start_python(
    python: str,
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
) -> "subprocess.Popen[bytes]":
    """Starts it; NotTrustedError if it may not be run, another OSError or ValueError if it cannot.

    -B: nothing is written beside what it imports. In a session of its own, so that it can be ended
    with all it started; in / because Python imports from the present folder, which may be /tmp.
    """
    python = _find_program(python)
    if reason := why_not_run(python):
        raise NotTrustedError(reason)
    return subprocess.Popen(
        [python, "-B", *arguments],
        env=_build_environment(environ),
        stdin=stdin, stdout=stdout, stderr=stderr,
        cwd="/", start_new_session=True, bufsize=0,
    )  # fmt: skip


def end_with_children(process: "subprocess.Popen[bytes]") -> int:
    """Kills it with all it started, once: its pid may be used again. Returns its exit code.

    Closes what is read from it; its stdin is for whoever writes to it.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):  # gone; macOS: a zombie
        os.killpg(process.pid, signal.SIGKILL)
    try:
        code = process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:  # stuck in the kernel: left to itself
        code = -signal.SIGKILL
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    return code


def why_not_run(python: str) -> str | None:
    """The reason why this Python is not run, and what to do; None if nobody else can change it."""
    danger = find_danger_of(python)
    if danger is None:
        return None
    text = _("{danger}, so other users could run code as you; {advice}")
    return text.format(danger=danger.reason, advice=_advise(danger))


def _advise(danger: UnsafePath) -> str:
    if danger.kind == "owner" and os.geteuid() == 0:
        return _("run mpsbar as {user} instead").format(user=danger.who)
    if danger.remedy is None:
        return _("use an environment of your own, or start your script with mpsbar run")
    text = _("{command}, or start your script with mpsbar run")
    return text.format(command=danger.remedy)


def find_danger_of(python: str) -> UnsafePath | None:
    """The first of the files that decide what `python` runs and somebody else can change."""
    paths = list(_resolve_links(python))
    # Lazily: nothing is read before it was judged.
    for path in itertools.chain(paths, _find_parts(paths)):
        if danger := find_danger(path):
            return danger
    return None


def _build_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Leaves out the packages in a home folder that is not safe: sudo may leave $HOME a user's."""
    folders = [environ[name] for name in ("HOME", "PYTHONUSERBASE") if environ.get(name)]
    try:
        is_safe = not any(map(find_danger, itertools.chain(folders, _find_user_packages(folders))))
    except OSError:
        is_safe = False
    return dict(environ) if is_safe else {**environ, "PYTHONNOUSERSITE": "1"}


def _find_user_packages(folders: Sequence[str]) -> Iterator[str]:
    """What `pip install --user` has put into a home folder."""
    for folder in map(Path, folders):
        yield from _find_libraries(folder / ".local")
        yield from _find_libraries(folder)  # $PYTHONUSERBASE
        for version in _list(folder / "Library/Python"):  # a framework build on macOS
            packages = folder / "Library/Python" / version / "lib/python/site-packages"
            yield from _find_packages(packages)


def _find_program(python: str) -> str:
    """The absolute path; a name is searched on PATH, as the shell does."""
    if python.startswith("/"):
        return python
    return os.path.abspath(shutil.which(python) or python)  # noqa: PTH100 - a venv's is a link


def _resolve_links(path: str) -> Iterator[str]:
    """The path and each that it is a link to: Python looks for its files beside all of them."""
    for _step in range(_MAX_LINKS):
        yield path
        if not os.path.islink(path):  # noqa: PTH114 - texts, all of these
            return
        path = os.path.join(os.path.dirname(path), os.readlink(path))  # noqa: PTH115, PTH118, PTH120


def _find_parts(paths: Sequence[str]) -> Iterator[str]:
    """The files beside a Python that decide what it runs. A venv names the folder of another."""
    waiting = [Path(path).parent for path in paths]
    done: set[Path] = set()
    while waiting:
        folder = waiting.pop(0)
        if folder in done or len(done) > _MAX_LINKS:
            continue
        done.add(folder)
        prefix = folder.parent
        # Judged by themselves: a sticky folder is safe on a path, but in these somebody else
        # could add a pyvenv.cfg or a library.
        yield from (str(folder), str(prefix))
        for settings in (folder / "pyvenv.cfg", prefix / "pyvenv.cfg"):
            if settings.exists():
                yield str(settings)
                waiting += _read_home(settings) if settings.is_file() else []
        yield from _find_libraries(prefix)
        if (prefix / _MAC_APP).exists():
            yield str(prefix / _MAC_APP)


def _read_home(settings: Path) -> list[Path]:
    """The folder of the Python that a venv was made with, whose standard library it uses."""
    with settings.open("rb") as file:
        text = file.read(_MAX_BYTES).decode("utf-8", "replace")
    match = re.search(r"^\s*home\s*=\s*(/.*?)\s*$", text, re.IGNORECASE | re.MULTILINE)
    return [Path(match[1])] if match else []


def _find_libraries(prefix: Path) -> Iterator[str]:
    for library in (prefix / "lib", prefix / "lib64", prefix / "local/lib"):  # the last: Debian's
        for version in _list(library):
            if _ZIPPED_LIBRARY.fullmatch(version):
                yield str(library / version)
            if not _LIBRARY.fullmatch(version):
                continue
            for name in ("", "lib-dynload"):
                yield from _find_code(library / version / name)
            for name in _PACKAGES:
                yield from _find_packages(library / version / name)


def _find_packages(folder: Path) -> Iterator[str]:
    """A folder of packages, and the folders that its .pth files add to those that are searched."""
    yield from _find_code(folder)
    for name in _list(folder):
        if name.endswith(".pth") and (folder / name).is_file():
            for added in _read_pth(folder / name):
                yield from _find_code(folder / added)


def _find_code(folder: Path) -> Iterator[str]:
    """The folder, and all in it that can be imported. Not what lies deeper.

    Whoever owns a package has put its contents there, and to look at each of the 50,000 files of an
    environment with torch took 7 s where they had not been read before.
    """
    yield str(folder)  # also one that does not exist: somebody else could make it
    for name in _list(folder):
        path = folder / name
        is_package = name.isidentifier() and (path.is_dir() or path.is_symlink())
        if is_package or name.endswith(_CODE):
            yield str(path)


def _read_pth(file: Path) -> Iterator[str]:
    """The folders that a .pth file names; its other lines are code of the environment's owner."""
    with file.open("rb") as lines:
        text = lines.read(_MAX_BYTES).decode("utf-8", "replace")
    for line in text.splitlines():
        if line.strip() and not line.startswith(("#", "import ", "import\t")):
            yield line.rstrip()


def _list(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names, not paths
    except (FileNotFoundError, NotADirectoryError):
        return []
