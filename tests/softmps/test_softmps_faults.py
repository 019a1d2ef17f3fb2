"""Planted faults: each kind at its kernel and dtype only, each text as its torch has it."""

import pytest
from device_child import answer_of, run_child
from softmps.settings import TEXTS, read_settings

VERSIONS = [f"2.{minor}" for minor in range(1, 16)]
WRONG = "SOFTMPS_FAULTS must be faults such as 'wrong mm float16; refuse:dtype add * long', not "
FALL_BACK = "will fall back to run on the CPU. This may have performance implications."
CODE = """
import json, os, torch
x = torch.ones(4, 4, device="mps")
answers = {}
for name in os.environ["TEXTS"].split():
    try:
        getattr(torch, name)(x)
    except Exception as error:
        answers[name] = [type(error).__name__, str(error)]
print(json.dumps(answers))
"""
# Each text at an op of its own: how it begins for each version.
OPS = {
    "unimplemented": "sin", "float64": "cos", "float64_tensor": "tan", "float64_kernel": "exp",
    "dtype": "log", "undefined": "sqrt", "out_of_memory": "erf", "macos": "neg", "buffer": "sign",
    "linear": "abs", "softmax": "floor", "conv_transpose": "ceil", "dropout": "round",
    "index_reduce": "trunc", "batch_norm": "frac", "exponent": "tanh", "bfloat16": "sinh",
}  # fmt: skip


def expected(version: str) -> dict[str, tuple[str, str]]:
    minor = int(version[2:])
    issue = "issues/77764." if minor <= 5 else "issues/141287 and mention use-case"
    macos = (
        "MacOS 12.3+" if minor <= 5 else "MacOS 13.0+" if minor <= 10 else "MacOS 14.0+" if minor == 11
        else "macOS 14.0+" if minor <= 14 else "macOS 15.0+"
    )  # fmt: skip
    unit, pool = "GiB" if minor >= 8 else "GB", "shared" if minor >= 12 else "private"
    texts = {
        "unimplemented": ("NotImplementedError", issue),
        "float64": ("TypeError", "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please use float32 instead."),
        "float64_tensor": ("TypeError", "Cannot convert a float64 Tensor to MPS as the MPS framework doesn't support float64. Please use float32 instead."),
        "float64_kernel": ("RuntimeError", "float64 is not supported on MPS"),
        "dtype": ("TypeError", "Trying to convert Float to the MPS backend but it does not have support for that dtype."),
        "undefined": ("TypeError", "Undefined type Float"),
        "out_of_memory": ("RuntimeError", f"MPS backend out of memory (MPS allocated: 3.00 {unit}, other allocations: 512.00 {unit.replace('G', 'M')}, max allowed: 4.00 {unit}). Tried to allocate 1.00 {unit} on {pool} pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure)."),
        "macos": ("RuntimeError", f"The MPS backend is supported on {macos}. Current OS version can be queried using `sw_vers`"),
        "buffer": ("RuntimeError", f"Invalid buffer size: 5.00 {unit}"),
        "linear": ("RuntimeError", "MPS device does not support linear for non-float inputs"),
        "softmax": ("RuntimeError", "softmax only supported for floating types"),
        "conv_transpose": ("RuntimeError", "ConvTranspose 3D with BF16 or FP16 types is not supported on MPS"),
        "dropout": ("RuntimeError", "scaled_dot_product_attention for MPS does not support dropout."),
        "index_reduce": ("RuntimeError", "index_reduce for MPS does not support torch.long dtype"),
        "batch_norm": ("RuntimeError", "Long batch norm is not supported with MPS"),
        "exponent": ("RuntimeError", "MPS doesn't know how to do exponent_i64"),
    }  # fmt: skip
    if minor <= 8:
        text = (
            "BFloat16 is not supported on MPS"
            if minor <= 2
            else "MPS BFloat16 is only supported on MacOS 14 or newer"
        )
        texts["bfloat16"] = ("TypeError", text)
    return texts


@pytest.mark.parametrize("version", VERSIONS)
def test_each_text_as_its_torch_has_it(usable: None, version: str) -> None:
    wanted = expected(version)
    faults = "; ".join(f"refuse:{text} {OPS[text]} float32" for text in wanted)
    names = " ".join(OPS[text] for text in wanted)
    answers = answer_of(CODE, SOFTMPS_TORCH=version, SOFTMPS_FAULTS=faults, TEXTS=names)
    for text, (kind, words) in wanted.items():
        raised, message = answers[OPS[text]]
        assert raised == kind
        if text == "unimplemented":
            assert message.startswith(
                "The operator 'aten::sin' is not currently implemented for the MPS device. If you want this op to be "
            )
            assert words in message
            assert message.endswith(
                "as a fallback for this op. WARNING: this will be slower than running natively on MPS."
            )
        else:
            assert message == words


def test_every_text_is_tried() -> None:
    assert set(OPS) == set(TEXTS) == set(expected("2.4"))


def test_a_fault_hits_its_kernel_and_its_dtype_only(usable: None) -> None:
    code = """
    import json, torch
    def made(kind): return torch.full((4,), 2, device="mps", dtype=kind)
    print(json.dumps([
        torch.sin(made(torch.float16).float()).isfinite().all().item(),
        (made(torch.float16) * 3).tolist(), (made(torch.float32) * 3).tolist(), (made(torch.float16) + 3).tolist(),
    ]))
    """
    answers = answer_of(code, SOFTMPS_FAULTS="wrong mul float16")
    assert answers == [True, [13, 6, 6, 13], [6, 6, 6, 6], [5, 5, 5, 5]]


def test_kinds_and_conditions(usable: None) -> None:
    code = """
    import json, torch
    x = torch.arange(6.0).reshape(2, 3).to("mps")
    y = x.clone().t(); y.mul_(2)
    z = x.clone(); z.mul_(2)
    long = torch.ones(32769, device="mps")
    sums = torch.stack([x.sum() for _ in range(250)]).cpu()
    flags = torch.tensor([True, False]).to("mps")
    print(json.dumps([
        y.t().tolist() == x.tolist(), z.tolist() == (2 * x.cpu()).tolist(),
        long.sqrt()[0].item(), x.sqrt()[0, 1].item(), int((sums != 15).sum()), x.cumsum(0).abs().sum().item(),
        flags.logical_not().tolist(), (~flags).tolist(),
    ]))
    """
    faults = "unchanged mul float32 noncontiguous; wrong sqrt float32 long; wrong sum float32 seldom; zero cumsum *; wrong logical_not bool"
    answers = answer_of(code, SOFTMPS_FAULTS=faults)
    assert answers == [True, True, 3, 1, 2, 0, [True, False], [False, True]]


def test_the_fall_back_is_reported_once_as_torch_does(usable: None) -> None:
    code = """
    import json, torch, warnings
    def count():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            values = [torch.ones(3, device="mps").cumsum(0).tolist() for _ in range(3)]
        return [str(w.message) for w in caught if issubclass(w.category, UserWarning)], values[0]
    once = count()
    torch.set_warn_always(True)
    print(json.dumps([once, count()]))
    """
    (once, values), (always, _) = answer_of(code, SOFTMPS_FAULTS="fallback cumsum *")
    assert values == [1, 2, 3]
    assert (len(once), len(always)) == (1, 3)
    assert once[0].startswith(
        f"The operator 'aten::cumsum' is not currently supported on the MPS backend and {FALL_BACK}"
    )


def test_the_other_texts_of_a_fall_back(usable: None) -> None:
    code = """
    import json, torch, warnings
    x = torch.eye(3, device="mps")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values = [torch.sin(x).shape, torch.cos(x).shape]
    print(json.dumps([str(w.message).partition(" (Triggered")[0] for w in caught]))
    """
    assert answer_of(code, SOFTMPS_FAULTS="fallback:qr sin *; fallback:pool cos *") == [
        "linalg_qr: MPS implementation is currently limited to min(m,n) <= 512, falling back to CPU.",
        "MPS: passing divisor to Average Pooling op with int64 input is not supported on MPS backend. "
        "Falling back on CPU. This may have performance implications.",
    ]


def test_an_abort_is_one(usable: None) -> None:
    done = run_child(
        "import torch; torch.ones(2, device='mps').cumsum(0)", SOFTMPS_FAULTS="abort cumsum float32"
    )
    assert done.returncode == -6


def test_a_conjugated_operand_is_not_taken_for_the_plain_one(usable: None) -> None:
    """The probe's backward in complex64 found that it was."""
    code = """
    import json, torch
    a = torch.randn(3, 3, dtype=torch.complex64); b = a.to("mps")
    print(json.dumps(bool(torch.allclose((b.mH @ b).cpu(), a.mH @ a))))
    """
    assert answer_of(code) is True


@pytest.mark.parametrize("text", ["wrong", "wrong mm", "rong mm float16", "wrong mm half", "wrong mm * sometimes", "refuse:nothing mm *", "wrong mm * long now"])  # fmt: skip
def test_a_wrong_fault_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match="SOFTMPS_FAULTS") as caught:
        read_settings({"SOFTMPS_FAULTS": f"abort mm *; {text}"})
    assert str(caught.value) == f"{WRONG}{text!r}"


def test_no_torch_from_2_9_on_refuses_bfloat16() -> None:
    with pytest.raises(ValueError, match="no text that refuses bfloat16"):
        read_settings({"SOFTMPS_FAULTS": "refuse:bfloat16 mm *", "SOFTMPS_TORCH": "2.9"})
    assert read_settings(
        {"SOFTMPS_FAULTS": "refuse:bfloat16 mm *;", "SOFTMPS_TORCH": "2.8"}
    ).faults == (("refuse:bfloat16", "mm", "*", ""),)
