"""The one list of frameworks: what each is called, how it is recognised, where it keeps its memory.

Only data: the monitor reads it too. A new framework is a row here and the modules of its allocators
in `backends`, which are imported by name below too. This file imports nothing: with `mpsbar run`
every start of a Python runs it, and typing alone takes 10 ms there.
"""

TYPE_CHECKING = False  # that of typing, without importing it
if TYPE_CHECKING:
    # Never run. PyInstaller and its like put into a frozen program what import statements name.
    from .backends import cpu, cuda, mlx, mps  # noqa: F401


def mark(text: str) -> str:
    """Returns the text itself, as mark() in language.py, which imports typing."""
    return text


class Allocator:
    def __init__(
        self,
        name: str,  # of its module in `backends`; on the wire and in JSON
        is_metal: bool = False,  # whether its memory comes out of Metal's one budget
        label: str = "",  # in sentences, before "memory"
        # What a limit means, in whole sentences for `_()`; with CAN_LIMIT in the module.
        above_limit: str = "",
        while_running: str = "",  # more of it, where the limit is set for a running process
        from_start: str = "",  # more of it, where `mpsbar run --limit` sets it
    ) -> None:
        self.name = name
        self.is_metal = is_metal
        self.label = label
        self.above_limit = above_limit
        self.while_running = while_running
        self.from_start = from_start


class Framework:
    def __init__(
        self,
        name: str,  # on the wire, in JSON and in the rows of processes that are not connected
        label: str,  # in sentences
        module: str,  # what is imported: the framework is in use once sys.modules has it
        # The class of its tensors, in `module`; not an abstract one, of which the classes that are
        # registered are no subclasses.
        tensor: str,
        libraries: "tuple[str, ...]",  # the files of its code, without what follows the name
        allocators: "tuple[Allocator, ...]",  # the first is that of its usual device
        tensor_module: str = "",  # where the class of its tensors is, if not in `module`
    ) -> None:
        self.name = name
        self.label = label
        self.module = module
        self.tensor = tensor
        self.tensor_module = tensor_module or module
        self.libraries = libraries
        self.allocators = allocators


# In the order in which they are shown.
FRAMEWORKS = (
    Framework(
        "torch", "PyTorch", "torch", "Tensor",
        # libtorchaudio or a plug-in's libtorch_xla are not torch: they bring it.
        ("libtorch", "libtorch_cpu", "libtorch_cuda", "libtorch_python", "libc10"),
        (
            Allocator(
                "mps", is_metal=True, label="MPS",
                above_limit=mark(
                    "Above the limit PyTorch first returns its cache; if that is not enough, the "
                    "run gets an out-of-memory error, which ends most programs."
                ),
                while_running=mark(
                    "PyTorch takes memory in blocks of up to 1 GB: it may hold that much more than "
                    "the limit, and needs that much room below it."
                ),
                from_start=mark(
                    "PyTorch may hold one more block than its limit allows: 32 MB, or up to 1 GB "
                    "for limits below 2 GB. PyTorch watermarks that you set yourself take "
                    "precedence."
                ),
            ),
            Allocator("cuda"),
            Allocator("cpu"),
        ),
    ),
    Framework(
        "mlx", "MLX", "mlx.core", "array", ("libmlx",),
        (
            Allocator(
                "mlx", is_metal=True, label="MLX",
                above_limit=mark(
                    "Above the limit MLX returns its cache and waits for running work. It raises "
                    "no error: arrays that are in use can still grow past the limit."
                ),
            ),
        ),
    ),
)  # fmt: skip
ALLOCATORS = [allocator for framework in FRAMEWORKS for allocator in framework.allocators]
LIMITABLE = [allocator for allocator in ALLOCATORS if allocator.above_limit]


def join_labels(word: str) -> str:
    """Joins all labels for a sentence: PyTorch or MLX."""
    return _join([framework.label for framework in FRAMEWORKS], word)


def join_limitable(word: str) -> str:
    """Joins the labels of the memory that can be limited: MPS or MLX."""
    return _join([allocator.label for allocator in LIMITABLE], word)


def _join(labels: "list[str]", word: str) -> str:
    *first, last = labels
    return f"{', '.join(first)} {word} {last}" if first else last
