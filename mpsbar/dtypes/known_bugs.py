"""What was silently wrong on MPS, by the name of its check: pytorch's issues and where it is known.

Reported by others; nothing here was measured on a Mac.
"""

from dataclasses import dataclass

from mpsbar.core.torch_releases import Release


@dataclass(frozen=True, slots=True)
class Bug:
    issues: tuple[int, ...]  # github.com/pytorch/pytorch/issues/…
    first: Release | None = None  # None: from the beginning, or not known
    last: Release | None = None  # None: not fixed as far as is known
    macos_below: int | None = None
    chips: tuple[str, ...] = ()


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
