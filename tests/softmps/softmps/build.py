"""Compile the device's C++ once per torch, Python and source, and keep it for every process."""

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent / "csrc"
FLAGS = ("-std=c++20", "-O1", "-g0", "-fPIC", "-shared")
COMPILERS = ("c++", "g++", "clang++")
# A cold compile takes about 20 s; a loaded machine with swap may need many times that.
COMPILE_TIMEOUT_S = 900


class BuildError(Exception):
    """The device could not be compiled; the message is one line."""


@dataclass(frozen=True, slots=True)
class Torch:
    """What a build must know of the installed torch, read without importing it."""

    folder: Path
    version: str
    abi: str


def build(say: Callable[[str], None] = lambda line: None) -> Path:
    """The shared library for this torch and Python, compiled now if there is none yet."""
    torch = find_torch()
    library = library_path(torch)
    if library.exists():
        return library
    compiler = find_compiler()
    if compiler is None:
        raise BuildError(_no_compiler())
    library.parent.mkdir(parents=True, exist_ok=True)
    with _only_one(library.with_suffix(".lock")):
        if not library.exists():  # else another process was faster
            say("softmps: compiling, about 20 s")
            _compile(compiler, torch, library)
    return library


def why_no_build() -> str | None:
    """One sentence why there is no library and none can be made; None when all is well."""
    if sys.platform != "linux":
        return "softmps works on Linux only"
    try:
        library = library_path(find_torch())
    except BuildError as error:
        return str(error)
    return None if library.exists() or find_compiler() else _no_compiler()


def find_torch() -> Torch:
    """The torch that `import torch` would take, found by its files alone."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise BuildError("torch is not installed for this Python")
    folder = Path(spec.submodule_search_locations[0])
    try:
        version = re.search(r"__version__ = '(.+)'", (folder / "version.py").read_text())
        config = (folder / "share/cmake/Torch/TorchConfig.cmake").read_text()
    except OSError as error:
        raise BuildError(f"torch has no {error.filename}") from error
    abi = re.search(r"_GLIBCXX_USE_CXX11_ABI=(\d)", config)
    return Torch(folder, version[1] if version else "unknown", abi[1] if abi else "1")


def find_compiler() -> str | None:
    """The path of a C++ compiler: $CXX if set, else the first usual name there is."""
    names = [os.environ["CXX"]] if os.environ.get("CXX") else COMPILERS
    return next((path for path in map(shutil.which, names) if path), None)


def library_path(torch: Torch) -> Path:
    """Where the build for this torch, this Python and these sources lies or will lie."""
    digest = hashlib.sha256(" ".join((*FLAGS, torch.abi)).encode())
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.name.encode() + source.read_bytes())
    digest.update((torch.folder / "version.py").read_bytes())
    key = f"torch-{torch.version}-{sys.implementation.cache_tag}-{digest.hexdigest()[:12]}"
    return cache_folder() / key / "softmps.so"


def cache_folder() -> Path:
    """$SOFTMPS_CACHE, else a folder of this Python's environment, else one of the user's."""
    if given := os.environ.get("SOFTMPS_CACHE"):
        return Path(given)
    if os.access(sys.prefix, os.W_OK):
        return Path(sys.prefix) / "share" / "softmps"
    return Path.home() / ".cache" / "softmps"


def _compile(compiler: str, torch: Torch, library: Path) -> None:
    handle, unfinished = tempfile.mkstemp(suffix=".so", dir=library.parent)
    os.close(handle)
    try:
        _run([
            compiler, *FLAGS, f"-D_GLIBCXX_USE_CXX11_ABI={torch.abi}",
            f"-I{torch.folder / 'include'}", str(SOURCES / "softmps.cpp"), "-o", unfinished,
            f"-L{torch.folder / 'lib'}", "-ltorch_cpu", "-lc10",
        ])  # fmt: skip
        Path(unfinished).replace(library)
    finally:
        Path(unfinished).unlink(missing_ok=True)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMPILE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"softmps could not be compiled: {error}") from error
    if done.returncode:
        raise BuildError(
            "softmps could not be compiled: "
            + first_error(done.stderr + done.stdout, done.returncode)
        )


def first_error(output: str, status: int) -> str:
    """The compiler's first error line, or what else there is to say."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)]
    return (errors or lines or [f"the compiler ended with status {status}"])[0]


def _no_compiler() -> str:
    if given := os.environ.get("CXX"):
        return f"softmps is not built and CXX names no compiler: {given}"
    return f"softmps is not built and no C++ compiler was found ({', '.join(COMPILERS)})"


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # let go when the file is closed, or we die
        yield
