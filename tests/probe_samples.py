"""Results of the dtype probe made by hand: what a view or a verdict needs, without a torch."""

from dataclasses import replace

from mpsbar.core.dtype_results import Cell, Check, OperationSpeed, Probe
from mpsbar.dtypes import checks, operations
from mpsbar.dtypes.table import TableStyle

NO_FLOAT64 = (
    "TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. "
    "Please use float32 instead."
)
NO_FLOAT8 = "TypeError: Trying to convert {} to the MPS backend but it does not have support for that dtype."

# Not all there are: a new operation changes neither these samples nor what is read of them.
OPERATIONS = (
    "create", "copy", "add", "matmul", "linear", "conv2d", "softmax", "layer_norm", "attention", "sum",
    "cumsum", "argmax", "index", "sort", "embedding", "backward", "adam", "autocast",
)  # fmt: skip

# torch 2.12 to 2.14 of itself on MPS.
CAPABILITY = (
    "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "complex32", "complex64", "bool",
)  # fmt: skip


# The fastest and the slowest round of each dtype.
SPEEDS = (
    OperationSpeed(
        "matmul",
        "1536×1536",
        {"float32": (2e-3, 2.1e-3), "float16": (1e-3, 1.1e-3), "bfloat16": (2e-3, 2.2e-3)},
    ),
)


def make_probe(device="mps", torch="2.13.0", system="15.1", changed=None, wrong=None, **values):
    """A Mac as it should be; `changed`: cells by name that are not, `wrong`: checks by name."""
    changed, wrong = changed or {}, wrong or {}
    cells = tuple(
        make_cell(
            operation,
            dtype,
            changed.get(f"{operation}/{dtype}") or changed.get(f"*/{dtype}"),
            device,
        )
        for dtype in operations.DTYPES
        for operation in OPERATIONS
    )
    found = tuple(wrong.get(name) or Check(name, "right") for name in checks.CHECKS)
    probe = Probe(
        python="/venv/bin/python", ended="ok", prefix="/venv", version="3.11.7", torch=torch, system=system,
        os="macOS", device=device, device_name="Apple M1" if device == "mps" else None, cells=cells,
        checks=found, speeds=SPEEDS, load=1.2, cores=8, capability=CAPABILITY if device == "mps" else None,
        time=1.7e9, seconds=2.5, memory=60 << 20, ceiling=256 << 20,
    )  # fmt: skip
    return replace(probe, **values)


def make_cell(operation, dtype, changed, device):
    if dtype not in operations.OPERATIONS[operation][1]:
        return Cell(operation, dtype, "meaningless")
    if changed is not None:
        state, text = changed
        return Cell(operation, dtype, state, text)
    if device == "mps" and dtype == "float64":
        return Cell(operation, dtype, "unsupported", NO_FLOAT64)
    if device == "mps" and dtype.startswith("float8") and operation != "copy":
        return Cell(operation, dtype, "unsupported", NO_FLOAT8.format(dtype.capitalize()))
    return Cell(operation, dtype, "works", None, 1e-7)


FELL_BACK = "The operator 'aten::cumsum' is not currently supported on the MPS backend and will fall back to run on the CPU."
BAD = make_probe(
    changed={
        "matmul/float16": ("inaccurate", None), "linear/float16": ("inaccurate", None),
        "sort/bfloat16": ("crashed", "SIGABRT"), "cumsum/int64": ("fallback", FELL_BACK),
        "matmul/int8": ("unsupported", 'RuntimeError: "addmm" not implemented'),
    },
    wrong={"adam": Check("adam", "wrong", "the parameter did not change")},
)  # fmt: skip
TERMINAL = TableStyle(with_signs=True, width=100)
