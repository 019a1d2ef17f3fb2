"""Which loaded files make a process one of PyTorch or MLX. Pure."""

import re

# The file names of wheels, conda packages and source builds, on Linux and macOS; a hash after
# the name is auditwheel's. libtorchaudio or a plug-in's libtorch_xla are not it: they bring it.
_FILES = re.compile(
    r"lib(?:(?P<torch>torch|torch_cpu|torch_cuda|torch_python|c10)|(?P<mlx>mlx))"
    r"(?:-[0-9a-f]+)?(?:\.dylib|\.so(?:\.\d+)*)"
)


def framework_of(path: str) -> str | None:
    """torch, mlx or None for one mapped file."""
    match = _FILES.fullmatch(path.removesuffix(" (deleted)").rpartition("/")[2])
    return match and match.lastgroup
