"""The operations of the probe, for every dtype: how each is run, and how its error is measured.

The probe's child process runs this text in any Python (3.9 and newer): it uses the standard
library and the torch it is given, no other module.
"""

from __future__ import annotations

import importlib
import math
from typing import Any, Callable  # noqa: UP035 - collections.abc's needs 3.9.2

FLOATS = ("float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2")
COMPLEX = ("complex64",)
INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "uint16")
BOOL = ("bool",)
COMPILE = "torch.compile"
DTYPES = (
    *FLOATS[:4],
    *COMPLEX,
    *INTEGERS,
    *BOOL,
    *FLOATS[4:],
)  # float32 first: others are timed against it

# The error that rounding may cause, relative to the largest number of the result; other dtypes are
# exact.
TOLERANCE = {
    "float64": 1e-10, "float32": 1e-4, "complex64": 1e-4, "float16": 1e-2, "bfloat16": 5e-2,
    "float8_e4m3fn": 0.2, "float8_e5m2": 0.4,
}  # fmt: skip


class Target:
    """Where an operation runs: a device and a dtype, or the CPU and the widest dtype."""

    def __init__(self, torch: Any, device: str, dtype: str, wide: bool = False) -> None:
        self.torch, self.device, self.name, self.wide = torch, device, dtype, wide
        self.functional = torch.nn.functional
        self.dtype = getattr(torch, dtype)
        self.seed = 0

    def make(self, *shape: int) -> Any:
        """Makes the same random numbers on every target, rounded, too small to overflow."""
        self.seed += 1
        generator = self.torch.Generator().manual_seed(self.seed)
        if self.name in (*INTEGERS, *BOOL):
            most = 2 if self.name == "bool" else 3
            made = self.torch.randint(0, most, shape, generator=generator)
        elif self.name in COMPLEX:
            made = self.torch.randn(*shape, 2, generator=generator, dtype=self.torch.float64)
            made = self.torch.view_as_complex(made)
        else:
            made = self.torch.randn(*shape, generator=generator, dtype=self.torch.float64)
        return self.put(made)

    def put(self, tensor: Any) -> Any:
        tensor = tensor.to(self.dtype)
        return tensor.to(self._widest()) if self.wide else tensor.to(self.device)

    def plain(self, tensor: Any) -> Any:
        """Puts indices and masks on the device; they keep their own dtype."""
        return tensor.to(self.device)

    def _widest(self) -> Any:
        if self.name in INTEGERS:
            return self.torch.int64
        if self.name in COMPLEX:
            return self.torch.complex128
        return self.torch.bool if self.name == "bool" else self.torch.float64


def _create(t: Target) -> Any:
    kind = t.torch.float64 if t.wide and t.name not in COMPLEX else t.dtype
    return lambda: t.torch.ones(64, 64, dtype=kind, device=t.device)


def _copy(t: Target) -> Any:
    here = t.make(64, 64).cpu()
    return lambda: here.t().to(t.device).cpu()


def _add(t: Target) -> Any:
    """torch.add, because a + b would replace torch's TypeError by Python's own."""
    a, b = t.make(64, 64), t.make(64)
    return lambda: t.torch.add(a, b)


def _matmul(t: Target) -> Any:
    a, b = t.make(48, 32), t.make(32, 48)
    return lambda: t.torch.matmul(a, b)


def _linear(t: Target) -> Any:
    x, weight, bias = t.make(32, 64), t.make(64, 64), t.make(64)
    return lambda: t.functional.linear(x, weight, bias)


def _conv2d(t: Target) -> Any:
    x, weight = t.make(1, 4, 16, 16), t.make(8, 4, 3, 3)
    return lambda: t.functional.conv2d(x, weight, padding=1)


def _softmax(t: Target) -> Any:
    x = t.make(32, 64)
    return lambda: x.softmax(-1)


def _layer_norm(t: Target) -> Any:
    x, weight, bias = t.make(32, 64), t.make(64), t.make(64)
    return lambda: t.functional.layer_norm(x, (64,), weight, bias)


def _attention(t: Target) -> Any:
    q, k, v = t.make(1, 4, 128, 64), t.make(1, 4, 128, 64), t.make(1, 4, 128, 64)
    return lambda: t.functional.scaled_dot_product_attention(q, k, v)


def _sum(t: Target) -> Any:
    x = t.make(32, 64)
    if t.name in (*INTEGERS, *BOOL):
        return lambda: x.sum(0)
    return lambda: (x.sum(0), x.mean(1))


def _cumsum(t: Target) -> Any:
    x = t.make(8, 32)
    return lambda: x.cumsum(1)


def _argmax(t: Target) -> Any:
    rows, columns = t.torch.arange(8).unsqueeze(1), t.torch.arange(8)
    x = t.put((columns * 5 + rows * 3) % 8)  # no number twice in a row, so the answer is unique
    return lambda: x.argmax(1)


def _index(t: Target) -> Any:
    a, b = t.make(16, 16), t.make(16, 16)
    rows = t.plain(t.torch.tensor([3, 1, 15, 0, 3]))
    mask = t.plain(t.torch.arange(256).reshape(16, 16) % 3 == 0)
    return lambda: (a[rows], a[mask], t.torch.where(mask, a, b))


def _sort(t: Target) -> Any:
    x = t.make(16, 64)
    return lambda: x.sort(1).values


def _embedding(t: Target) -> Any:
    rows = t.torch.tensor([3, 1, 15, 0, 3])
    if t.name in FLOATS:
        rows, weight = t.plain(rows), t.make(16, 32)
    else:
        rows, weight = t.put(rows), t.plain(t.torch.arange(512.0).reshape(16, 32))
    return lambda: t.functional.embedding(rows, weight)


def _backward(t: Target) -> Any:
    x, weight = t.make(16, 16), t.make(16, 16).requires_grad_()

    def run() -> Any:
        weight.grad = None
        t.torch.matmul(x, weight).abs().sum().backward()
        return weight.grad

    return run


def _adam(t: Target) -> Any:
    """One step as torch.optim.Adam does it; that class would import half of torch.compile."""
    adam = importlib.import_module("torch.optim.adam").adam

    torch, weight = t.torch, t.make(16, 16)
    grad = t.put(torch.linspace(0.5, 1.5, 256).reshape(16, 16))

    def run() -> Any:
        parameter = weight.clone()
        averages, squares = torch.zeros_like(weight), torch.zeros_like(weight)
        adam(
            [parameter], [grad], [averages], [squares], [], [torch.tensor(0.0)], amsgrad=False,
            beta1=0.9, beta2=0.999, lr=0.1, weight_decay=0.0, eps=1e-8, maximize=False,
        )  # fmt: skip
        return parameter

    return run


def _autocast(t: Target) -> Any:
    x, weight = t.make(16, 32), t.make(32, 32)
    if t.wide:
        return lambda: t.functional.linear(x, weight)
    x, weight = x.float(), weight.float()

    def run() -> Any:
        with t.torch.autocast(t.device, dtype=t.dtype):
            y = t.functional.linear(x, weight)
        if y.dtype != t.dtype:
            raise TypeError(f"autocast to {t.name} left the result in {y.dtype}")
        return y

    return run


def _compile(t: Target) -> Any:
    """Compiles a small block with torch.compile; the CPU's right answer is not compiled."""
    x, weight, bias = t.make(32, 64), t.make(64), t.make(64)

    def block(x: Any, weight: Any, bias: Any) -> Any:
        normal = t.functional.layer_norm(x, (64,), weight, bias)
        return t.functional.gelu(normal).sum(-1)

    run = block if t.wide else t.torch.compile(block, fullgraph=True, dynamic=False)
    return lambda: run(x, weight, bias)


_REAL = (*FLOATS, *INTEGERS, *BOOL)
_ALL = (*_REAL, *COMPLEX)
# By name, in the order they are shown: how it is run, and the dtypes for which it is meaningful.
OPERATIONS: dict[str, tuple[Callable[[Target], Any], tuple[str, ...]]] = {
    "create": (_create, _ALL),
    "copy": (_copy, _ALL),
    "add": (_add, _ALL),
    "matmul": (_matmul, (*FLOATS, *COMPLEX, *INTEGERS)),
    "linear": (_linear, (*FLOATS, *COMPLEX)),
    "conv2d": (_conv2d, (*FLOATS, *COMPLEX)),
    "softmax": (_softmax, FLOATS),
    "layer_norm": (_layer_norm, FLOATS),
    "attention": (_attention, FLOATS),
    "sum": (_sum, _ALL),
    "cumsum": (_cumsum, _ALL),
    "argmax": (_argmax, (*FLOATS, *INTEGERS)),
    "index": (_index, _ALL),
    "sort": (_sort, _REAL),
    "embedding": (_embedding, (*FLOATS, "int64", "int32")),
    "backward": (_backward, (*FLOATS, *COMPLEX)),
    "adam": (_adam, FLOATS),
    "autocast": (_autocast, ("float16", "bfloat16")),
    COMPILE: (_compile, ("float32", "float16", "bfloat16")),
}


def _large_matmul(t: Target, n: int) -> Any:
    a, b = t.make(n, n), t.make(n, n)
    return lambda: t.torch.matmul(a, b)


def _large_conv2d(t: Target, n: int) -> Any:
    x, weight = t.make(4, n, n, n), t.make(n, n, 3, 3)
    return lambda: t.functional.conv2d(x, weight, padding=1)


def _large_attention(t: Target, n: int) -> Any:
    q, k, v = t.make(1, 8, n, 64), t.make(1, 8, n, 64), t.make(1, 8, n, 64)
    return lambda: t.functional.scaled_dot_product_attention(q, k, v)


# What is timed, in the dtypes that people choose by speed: how it is run, the size on a GPU and on
# the CPU (one core), and the sizes in words. No tensor has 10 MB: for one torch would take 1 GB of
# MPS memory at once.
SPEED_DTYPES = ("float32", "float16", "bfloat16")
SPEEDS: dict[str, tuple[Callable[[Target, int], Any], int, int, str]] = {
    "matmul": (_large_matmul, 1536, 384, "{n}×{n}"),
    "conv2d": (_large_conv2d, 64, 32, "4×{n}×{n}×{n}"),
    "attention": (_large_attention, 512, 128, "8×{n}×64"),
}


def measure_error(got: Any, right: Any) -> float:
    """Returns the largest difference over the largest number; infinite for NaN or other shapes."""
    if got.shape != right.shape:
        return float("inf")
    right = right.detach()
    right = right if right.is_complex() else right.double()
    difference = float((got.to(right.dtype) - right).abs().max())
    largest = float(right.abs().max())
    return float("inf") if math.isnan(difference) else difference / max(largest, 1e-30)
