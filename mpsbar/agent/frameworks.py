"""The one list of frameworks: what each is called, how it is recognised, where it keeps its memory.

Only data: the monitor reads it too. A new framework is a row here and its module in `backends`.
This file imports nothing: with `mpsbar run` every start of a Python runs it, and typing alone takes
10 ms there.
"""


class Framework:
    def __init__(
        self,
        name: str,  # on the wire, in JSON and in the rows of processes that are not connected
        label: str,  # in sentences
        module: str,  # what is imported: the framework is in use once sys.modules has it
        tensor: str,  # the class of its tensors, in `module`
        libraries: "tuple[str, ...]",  # the files of its code, without what follows the name
        backends: "tuple[str, ...]",  # the modules of its allocators, in `backends`
        metal: "tuple[str, ...]" = (),  # those whose memory comes out of Metal's one budget
    ) -> None:
        self.name = name
        self.label = label
        self.module = module
        self.tensor = tensor
        self.libraries = libraries
        self.backends = backends
        self.metal = metal


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
    """Joins all labels for a sentence: PyTorch or MLX."""
    *first, last = [framework.label for framework in FRAMEWORKS]
    return f"{', '.join(first)} {word} {last}" if first else last
