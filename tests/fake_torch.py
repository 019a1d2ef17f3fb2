"""A package named torch for one child: versions that cannot be installed here, and torches that fail.

The boundary is the package itself; the throwaway runs unmodified, in a real Python.
"""

import os
import textwrap
from pathlib import Path

# What the throwaway uses of torch, on a device that computes with nothing.
WORKING = """
import types
__version__ = {version!r}
version = types.SimpleNamespace(cuda=None, hip=None)
cuda = types.SimpleNamespace(is_available=lambda: {cuda})
backends = types.SimpleNamespace(
    mps=types.SimpleNamespace(is_built=lambda: {built}, is_available=lambda: {available})
)
class ones:
    def __init__(self, *shape, device):
        self.device = device
    def __matmul__(self, other):
        return self
    def sum(self):
        return self
    def item(self):
        return {result}
"""


def make_torch(folder: Path, code: str = "", packaged: str | None = "2.5.1") -> str:
    """What to put into PYTHONPATH so that `import torch` runs `code`."""
    package = folder / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(textwrap.dedent(code))
    if packaged is not None:
        info = folder / f"torch-{packaged}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {packaged}\n")
    return str(folder)


def working(
    version: str = "2.13.0",
    *,
    cuda: object = False,
    built: object = True,
    available: object = True,
    result: object = 8.0,
) -> str:
    return WORKING.format(
        version=version, cuda=cuda, built=built, available=available, result=result
    )


def add_startup(folder: Path, code: str) -> str:
    """The same for a start-up file."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(textwrap.dedent(code))
    return str(folder)


def join(*folders: str) -> str:
    return os.pathsep.join(folders)
