"""Checks for bugs that silently gave wrong results in some torch on MPS, and their issues.

Each check returns None, or what is wrong here. The probe's child process runs this text in any
Python (3.9 and newer): it uses the standard library and the torch it is given, no other module.
"""

from __future__ import annotations

import importlib
from typing import Any, Callable, NamedTuple  # noqa: UP035 - collections.abc's needs 3.9.2


class Bug(NamedTuple):
    """Where a bug is known, as others reported it; nothing here was measured on a Mac."""

    issues: tuple[int, ...]  # github.com/pytorch/pytorch/issues/…
    first: tuple[int, int] | None = None  # release of torch; None: from the beginning, or not known
    last: tuple[int, int] | None = None  # None: not fixed as far as is known
    macos_below: int | None = None
    chips: tuple[str, ...] = ()


def _check_long_matmul(torch: Any, device: str) -> str | None:
    """The bug reads past the reduction dimension, where numbers of a freed tensor lie."""
    garbage = torch.full((50000, 25), 1e6, device=device)
    del garbage
    a = torch.rand(50000, 25)
    on_device = a.to(device)
    actual = on_device.t() @ on_device
    return _differs(actual, a.double().t() @ a.double(), 1e-3)


def _check_addcdiv(torch: Any, device: str) -> str | None:
    x, y, z = torch.rand(3, 2), torch.rand(2, 3), torch.rand(2, 3) + 1
    on_device = _copy(x, device).t()
    on_device.addcdiv_(y.to(device), z.to(device))
    on_device.addcmul_(y.to(device), z.to(device))
    return _differs(on_device, x.t() + y / z + y * z)


def _check_adam(torch: Any, device: str) -> str | None:
    def step(parameter: Any, grad: Any) -> None:
        _step_adam(torch, parameter, grad)

    return _steps_like_the_cpu(torch, device, step)


def _check_rprop(torch: Any, device: str) -> str | None:
    rprop = importlib.import_module("torch.optim.rprop").rprop

    def step(parameter: Any, grad: Any) -> None:
        values = {"step_size_min": 1e-6, "step_size_max": 50, "etaminus": 0.5, "etaplus": 1.2}
        sizes = torch.full_like(grad, 0.1)
        state = ([parameter], [grad], [torch.zeros_like(parameter)], [sizes])
        try:
            rprop(*state, state_steps=[torch.tensor(0.0)], **values)
        except TypeError:  # before torch 2.3 it counted no steps
            rprop(*state, **values)

    return _steps_like_the_cpu(torch, device, step)


def _check_random(torch: Any, device: str) -> str | None:
    """Some releases leave a transposed tensor unchanged instead of drawing into it."""
    draws: dict[str, Callable[[Any], Any]] = {
        "uniform_": lambda t: t.uniform_(1, 2), "normal_": lambda t: t.normal_(5, 0.1),
        "bernoulli_": lambda t: t.bernoulli_(1.0), "random_": lambda t: t.random_(1, 9),
    }  # fmt: skip
    for name, draw in draws.items():
        drawn = torch.zeros(4, 3, device=device).t()
        draw(drawn)
        if not bool((drawn.cpu() != 0).all()):
            return f"{name} left elements of a transposed tensor unchanged"
    return None


def _check_linear_weight(torch: Any, device: str) -> str | None:
    x, weight = torch.rand(4, 8), torch.rand(6, 8)
    on_device = weight.to(device).t().contiguous().t()
    actual = torch.nn.functional.linear(x.to(device), on_device)
    return _differs(actual, x.double() @ weight.double().t())


def _check_linear_bias(torch: Any, device: str) -> str | None:
    x, weight, bias = torch.rand(80, 1, 2), torch.rand(192, 2), torch.rand(192)
    actual = torch.nn.functional.linear(x.to(device), weight.to(device), bias.to(device))
    return _differs(actual, x.double() @ weight.double().t() + bias)


def _check_matmul_out(torch: Any, device: str) -> str | None:
    x, y = torch.rand(16, 8), torch.rand(8, 8)
    whole = torch.zeros(16, 24, device=device)
    torch.matmul(x.to(device), y.to(device), out=whole[:, 8:16])
    return _differs(whole[:, 8:16], x.double() @ y.double())


def _check_repeated_sum(torch: Any, device: str) -> str | None:
    x = torch.ones(64, 64, device=device)
    sums = torch.stack([x.sum() for _ in range(1000)]).cpu()
    wrong = int((sums != 4096).sum())
    return f"{wrong} of 1000 sums of the same tensor are wrong" if wrong else None


def _check_sum_uint8(torch: Any, device: str) -> str | None:
    x = torch.tensor([255, 2, 1, 5, 3, 6], dtype=torch.uint8).to(device)
    actual = int(x.sum(dtype=torch.uint8).cpu())
    return None if actual == 16 else f"the sum is {actual}, not 16"


def _check_cumsum(torch: Any, device: str) -> str | None:
    for name in ("int64", "int16", "int8", "bool"):
        x = torch.ones(128, dtype=getattr(torch, name)).to(device)
        actual = int(x.cumsum(0).cpu()[-1])
        if actual != 128:
            return f"128 ones of {name} add up to {actual}"
    return None


def _check_argmax(torch: Any, device: str) -> str | None:
    x = torch.randn(10, 2)
    actual, expected = x.to(device).argmax(1).cpu(), (x[:, 1] > x[:, 0]).long()
    return (
        None
        if bool((actual == expected).all())
        else f"argmax over two columns gives {actual.tolist()}"
    )


def _check_unique(torch: Any, device: str) -> str | None:
    keys = torch.randint(0, 450_000_000, (2000,))
    values, inverse = keys.to(device).unique(return_inverse=True)
    indices = inverse.cpu().clamp(0, values.numel() - 1)  # a wrong index may be out of range
    same = bool((values.cpu()[indices] == keys).all())
    return None if same else "unique(return_inverse=True) does not restore large int64 keys"


def _check_mask_assignment(torch: Any, device: str) -> str | None:
    x = torch.tensor([[1.0, 2.0, 3.0], [2.0, 5.0, 2.0]])
    on_device = _copy(x, device).t()
    on_device[on_device == 2] = -1
    return _differs(on_device, torch.where(x == 2, torch.tensor(-1.0), x).t())


def _check_layer_norm_grads(torch: Any, device: str) -> str | None:
    def grads(place: str, kind: Any) -> Any:
        norm = torch.nn.LayerNorm(8).to(place, kind)
        norm(x.to(place, kind)).square().sum().backward()
        return torch.stack([norm.weight.grad, norm.bias.grad])

    x = torch.rand(4, 8)  # the bug shows if the input needs no gradient
    return _differs(grads(device, torch.float32), grads("cpu", torch.float64))


def _check_conv_batch(torch: Any, device: str) -> str | None:
    weight = torch.ones(1, 1, 3, device=device, requires_grad=True)
    x = torch.ones(65537, 1, 3, device=device)
    torch.nn.functional.conv1d(x, weight).sum().backward()
    actual = weight.grad.cpu().flatten().tolist()
    return None if actual == [65537.0] * 3 else f"gradients over 65537 inputs are {actual}"


def _check_conv_channels(torch: Any, device: str) -> str | None:
    x, weight = torch.ones(1, 1, 2, device=device), torch.ones(65537, 1, 1, device=device)
    wrong = int((torch.nn.functional.conv1d(x, weight).cpu() != 1).sum())
    return f"{wrong} of 131074 values are not 1" if wrong else None


def _check_attention_dropout(torch: Any, device: str) -> str | None:
    q = torch.rand(1, 2, 16, 16).to(device)
    attend = torch.nn.functional.scaled_dot_product_attention
    same = bool((attend(q, q, q).cpu() == attend(q, q, q, dropout_p=0.9).cpu()).all())
    return "dropout_p=0.9 has no effect" if same else None


def _check_draws(torch: Any, device: str) -> str | None:
    drawn = torch.bernoulli(torch.full((256,), 0.5, device=device)).cpu()
    if not 0 < float(drawn.sum()) < 256:
        return f"bernoulli(0.5) drew {float(drawn.sum()):g} ones of 256"
    weights = torch.tensor([0.0, 3.0, 0.0, 1.0]).to(device)
    chosen = torch.multinomial(weights, 256, replacement=True).cpu()
    wrong = int(((chosen != 1) & (chosen != 3)).sum())
    return f"multinomial drew {wrong} of 256 samples that have no weight" if wrong else None


def _check_bitwise(torch: Any, device: str) -> str | None:
    x, y = torch.randint(0, 99, (3, 4)), torch.randint(0, 99, (4, 3))
    on_device = _copy(x, device).t()
    on_device.bitwise_and_(y.to(device))
    return _differs(on_device, x.t() & y)


def _check_fused_adam(torch: Any, device: str) -> str | None:
    """With found_inf set the optimizer must not step."""
    parameter, grad = torch.ones(8, device=device), torch.ones(8, device=device)
    _step_adam(torch, parameter, grad, fused=True, found_inf=torch.ones((), device=device))
    moved = bool((parameter.cpu() != 1).any())
    return "the step was taken although an infinity was found" if moved else None


def _step_adam(torch: Any, parameter: Any, grad: Any, **how: Any) -> None:
    """One step as torch.optim.Adam does it; that class would import half of torch.compile."""
    adam = importlib.import_module("torch.optim.adam").adam

    steps = torch.zeros((), device=parameter.device if how.get("fused") else "cpu")
    averages, squares = torch.zeros_like(parameter), torch.zeros_like(parameter)
    adam(
        [parameter], [grad], [averages], [squares], [], [steps], amsgrad=False,
        beta1=0.9, beta2=0.999, lr=0.1, weight_decay=0.0, eps=1e-8, maximize=False, **how,
    )  # fmt: skip


def _steps_like_the_cpu(torch: Any, device: str, step: Callable[[Any, Any], None]) -> str | None:
    """Compare one step of an optimizer on a parameter that is not contiguous."""
    start, grad = torch.rand(3, 2), torch.rand(2, 3) + 0.5
    on_device, on_cpu = _copy(start, device).t(), _copy(start, "cpu").t()
    step(on_device, grad.to(device))
    step(on_cpu, grad)
    if bool((on_device.cpu() == start.t()).all()):
        return "the parameter did not change"
    return _differs(on_device, on_cpu)


def _copy(tensor: Any, device: str) -> Any:
    """Returns a copy on the device, also on the CPU: what changes in place must not change the
    expected result."""
    return tensor.clone().to(device)


def _differs(actual: Any, expected: Any, most: float = 1e-4) -> str | None:
    actual, expected = actual.detach().cpu().double(), expected.detach().double()
    error = float((actual - expected).abs().max()) / float(expected.abs().max())
    return None if error <= most else f"the largest error is {error:.3g} times the largest value"


CHECKS: dict[str, Callable[[Any, str], str | None]] = {
    name[len("_check_") :]: check
    for name, check in list(globals().items())
    if name.startswith("_check_")
}
# By the name of the check.
BUGS: dict[str, Bug] = {
    "long_matmul": Bug((193487, 177116, 195163), (2, 7), (2, 13), chips=("M1", "M2")),
    "addcdiv": Bug((118115,), None, (2, 3), macos_below=15),
    "adam": Bug((118115,), None, (2, 3), macos_below=15),
    "rprop": Bug((118117,), (2, 2), (2, 2)),
    "random": Bug((165267, 165257, 124029), None, (2, 9), macos_below=15),
    "linear_weight": Bug((162730,), (2, 8), (2, 8)),
    "linear_bias": Bug((188438,), (2, 14), None, chips=("M1",)),
    "matmul_out": Bug((104832,), (2, 0), (2, 0)),
    "repeated_sum": Bug((178497,), (2, 11), None),
    "sum_uint8": Bug((179415,), (2, 11), (2, 11)),
    "cumsum": Bug((90635, 96614, 125318), (2, 0), (2, 3)),
    "argmax": Bug((92311,), (1, 13), (2, 0), macos_below=14),
    "unique": Bug((195595,), None, (2, 14)),
    "mask_assignment": Bug((126919, 124206), (2, 2), (2, 2)),
    "layer_norm_grads": Bug((183825,), None, (2, 12)),
    "conv_batch": Bug((96225,), None, None),
    "conv_channels": Bug((129207,), (2, 3), (2, 3)),
    "attention_dropout": Bug((184126,), None, (2, 12)),
    "draws": Bug((85611, 99802, 92752, 136623), (1, 12), (2, 4)),
    "bitwise": Bug((146085, 145203), (2, 6), (2, 6)),
    "fused_adam": Bug((186360,), None, (2, 13)),
}
