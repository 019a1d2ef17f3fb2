"""The one list of frameworks: what each is called, how it is recognised, where it keeps its memory.

Only data: the monitor reads it too. A new framework is a row here, its module in `backends`, and
its name in `startup_hook.NAMES`.
"""

from typing import NamedTuple


class Framework(NamedTuple):
    name: str  # on the wire, in JSON and in the rows of processes that are not connected
    label: str  # in sentences
    module: str  # in use once sys.modules has it; startup_hook.NAMES has the same
    tensor: str  # the class of its tensors, in `module`
    libraries: "tuple[str, ...]"  # the files of its code, without what follows the name
    backends: "tuple[str, ...]"  # the modules of its allocators, in `backends`
    metal: "tuple[str, ...]" = ()  # those whose memory comes out of Metal's one budget


# In the order in which they are shown.
FRAMEWORKS = (
    # libtorchaudio or a plug-in's libtorch_xla are not torch: they bring it.
    Framework(
        "torch", "PyTorch", "torch", "Tensor",
        ("libtorch", "libtorch_cpu", "libtorch_cuda", "libtorch_python", "libc10"),
        ("mps", "cuda", "cpu"), ("mps",),
    ),
    Framework("mlx", "MLX", "mlx.core", "array", ("libmlx",), ("mlx",), ("mlx",)),
)  # fmt: skip


def join_labels(word: str) -> str:
    """All of them for a sentence: PyTorch or MLX."""
    *first, last = [framework.label for framework in FRAMEWORKS]
    return f"{', '.join(first)} {word} {last}" if first else last
