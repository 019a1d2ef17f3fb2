"""Every verdict and every check on the software MPS device: with its planted fault, and without."""

import pytest
from probe_kit import add_small_speeds, needs_mps, run_child, run_many
from worker_kit import wait_for

from mpsbar.dtypes import checks
from mpsbar.dtypes.checks import BUGS
from mpsbar.dtypes.text import check_title, say_known_bug

pytestmark = needs_mps

NO_FLOAT64 = (
    "TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. "
    "Please use float32 instead."
)
FALLS_BACK = (
    "The operator 'aten::cumsum' is not currently supported on the MPS backend and will fall back to run on the CPU. "
    "This may have performance implications."
)
# For each check the fault it exists for, at the kernel and under the condition of the real bug
# where softmps computes in the same kernel; and what is said.
SILENT = {
    "long_matmul": ("wrong mm float32 long", "the largest error is"),
    "addcdiv": ("unchanged addcdiv float32 noncontiguous", "the largest error is"),
    "adam": ("unchanged addcdiv float32 noncontiguous", "the parameter did not change"),
    "rprop": ("unchanged addcmul float32 noncontiguous", "the parameter did not change"),
    "random": ("unchanged uniform_ float32 noncontiguous", "uniform_ left elements"),
    "linear_weight": ("wrong mm float32", "the largest error is"),
    "linear_bias": ("wrong addmm float32", "the largest error is"),
    "matmul_out": ("wrong mm float32 noncontiguous", "the largest error is"),
    "repeated_sum": ("wrong sum float32 seldom", "10 of 1000 sums"),
    "sum_uint8": ("wrong sum uint8", "the sum is 17, not 16"),
    "cumsum": ("wrong cumsum bool", "128 ones of bool add up to 129"),
    "argmax": ("wrong argmax float32", "argmax over two columns gives"),
    "unique": ("wrong _unique2 int64", "does not restore"),
    "mask_assignment": ("unchanged _index_put_impl_ float32", "the largest error is"),
    "layer_norm_grads": ("wrong native_layer_norm_backward float32", "the largest error is"),
    "conv_batch": ("wrong convolution_backward float32 long", "gradients over 65537 inputs are"),
    "conv_channels": ("wrong convolution float32 long", "2 of 131074 values"),
    "attention_dropout": ("unchanged scaled_dot_product_attention float32", "dropout_p=0.9 has no effect"),
    "draws": ("zero bernoulli_ float32", "bernoulli(0.5) drew 0 ones of 256"),
    "bitwise": ("unchanged bitwise_and int64 noncontiguous", "the largest error is"),
    "fused_adam": ("wrong _fused_adam_ float32", "the step was taken although an infinity was found"),
}  # fmt: skip
OTHERS = {  # second ways to be wrong of the same checks
    "random": [
        ("unchanged normal_ float32 noncontiguous", "normal_ left"),
        ("unchanged bernoulli_ float32 noncontiguous", "bernoulli_ left"),
        ("unchanged random_ float32 noncontiguous", "random_ left"),
    ],
    "cumsum": [
        ("wrong cumsum int64", "of int64 add up to 129"),
        ("wrong cumsum int8", "of int8 add up"),
    ],
    "draws": [
        ("wrong multinomial float32", "multinomial drew 2 of 256 samples that have no weight")
    ],
}


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    return run_child(PYTHONPATH=add_small_speeds(tmp_path_factory.mktemp("small speeds")))


def test_all_is_quiet_without_a_fault(clean):
    stages, answers, _ = clean
    assert stages["device"]["device"] == "mps"
    assert {answers[check]["state"] for check in checks.CHECKS} == {"right"}
    assert {a["state"] for a in answers.values()} <= {
        "works",
        "right",
        "meaningless",
        "unsupported",
        "timed",
    }


def test_what_real_mps_refuses_is_refused_by_default(clean):
    _, answers, _ = clean
    for cell, answer in answers.items():
        if cell.endswith("/float64") and answer["state"] != "meaningless":
            assert (answer["state"], answer["text"]) == ("unsupported", NO_FLOAT64)
    for dtype, name in (("float8_e4m3fn", "Float8_e4m3fn"), ("float8_e5m2", "Float8_e5m2")):
        assert answers[f"add/{dtype}"]["text"] == (
            f"TypeError: Trying to convert {name} to the MPS backend but it does not have support for that dtype."
        )


def test_each_check_has_its_fault_its_issue_and_its_words():
    assert set(SILENT) == set(checks.CHECKS) == set(BUGS)
    for check in checks.CHECKS:
        assert check_title(check) != check
        assert say_known_bug(check).startswith("pytorch #")


def test_each_check_fires_on_its_planted_fault():
    wanted = [(check, *fault) for check, fault in SILENT.items()]
    wanted += [(check, *fault) for check, more in OTHERS.items() for fault in more]
    runs = run_many([{"cells": [check], "SOFTMPS_FAULTS": fault} for check, fault, _ in wanted])
    found = {
        fault: answers[check]
        for (check, fault, _), (_, answers, _) in zip(wanted, runs, strict=True)
    }
    silent = {fault: answer for fault, answer in found.items() if answer["state"] != "wrong"}
    assert silent == {}
    for _, fault, text in wanted:
        assert text in found[fault]["text"] or fault.startswith("unchanged addcdiv")


# fault, cell, state, what is said. The states of a crash and a hang are the runner's to tell.
CELLS = [
    ("wrong mm float16", "matmul/float16", "inaccurate", None),
    ("wrong copy_ int32", "copy/int32", "inaccurate", None),
    ("zero cumsum bfloat16", "cumsum/bfloat16", "inaccurate", None),
    ("wrong scaled_dot_product_attention float16", "attention/float16", "inaccurate", None),
    ("wrong native_batch_norm bfloat16", "layer_norm/bfloat16", "inaccurate", None),
    ("wrong _softmax float16", "softmax/float16", "inaccurate", None),
    ("wrong sort int64", "sort/int64", "inaccurate", None),
    ("wrong argmax int16", "argmax/int16", "inaccurate", None),
    ("wrong index uint8", "index/uint8", "inaccurate", None),
    ("wrong index_select float32", "embedding/float32", "inaccurate", None),
    ("wrong convolution float16", "conv2d/float16", "inaccurate", None),
    ("wrong addmm bfloat16", "linear/bfloat16", "inaccurate", None),
    ("wrong add bool", "add/bool", "inaccurate", None),
    ("wrong sum uint16", "sum/uint16", "inaccurate", None),
    ("zero fill_ float16", "create/float16", "inaccurate", None),
    ("wrong addcdiv float16", "adam/float16", "inaccurate", None),
    ("wrong mm bfloat16", "backward/bfloat16", "inaccurate", None),
    ("wrong mm bfloat16", "autocast/bfloat16", "inaccurate", None),
    ("fallback cumsum *", "cumsum/float32", "fallback", FALLS_BACK),
    ("refuse:linear addmm float32", "linear/float32", "unsupported", "MPS device does not support linear for non-float inputs"),
    ("refuse:unimplemented sort int8", "sort/int8", "unsupported", "NotImplementedError: The operator 'aten::sort' is not currently implemented for the MPS device."),
    ("refuse:dtype empty complex64", "create/complex64", "unsupported", "TypeError: Trying to convert ComplexFloat to the MPS backend"),
    ("refuse:out_of_memory add float32", "add/float32", "no_memory", "MPS backend out of memory"),
]  # fmt: skip


def test_each_state_of_a_cell_and_each_operation():
    """Every operation has its planted wrong number: none of the comparisons is for show."""
    runs = run_many([{"cells": [cell], "SOFTMPS_FAULTS": fault} for fault, cell, _, _ in CELLS])
    missed = []
    for (fault, cell, state, text), (_, answers, _) in zip(CELLS, runs, strict=True):
        answer = answers[cell]
        if answer["state"] != state or (text or "") not in answer.get("text", ""):
            missed.append((fault, answer))
    assert missed == []
    assert {cell.partition("/")[0] for _, cell, _, _ in CELLS} == {
        cell.partition("/")[0] for cell in run_child([])[0]["device"]["cells"] if "/" in cell
    }


def test_every_fallback_is_reported_not_only_the_first():
    """torch itself warns once in a process."""
    cells = ["cumsum/float32", "sort/float32", "cumsum/int64", "add/float32"]
    _, answers, _ = run_child(cells, SOFTMPS_FAULTS="fallback cumsum *; fallback sort *")
    assert [answers[cell]["state"] for cell in cells] == [
        "fallback",
        "fallback",
        "fallback",
        "works",
    ]


def test_a_fall_back_in_other_words_and_in_the_backward_pass():
    """Kernels of a backward pass run on a thread of torch's own."""
    cells = ["sort/float32", "cumsum/float32", "backward/float32", "add/float32"]
    faults = "fallback:qr sort *; fallback:pool cumsum *; fallback sgn *"
    _, answers, _ = run_child(cells, SOFTMPS_FAULTS=faults)
    assert [answers[cell]["state"] for cell in cells] == ["fallback"] * 3 + ["works"]
    assert answers["sort/float32"]["text"].endswith("falling back to CPU.")
    assert "Falling back on CPU" in answers["cumsum/float32"]["text"]


def test_slowness_is_measured(tmp_path):
    """The planted kernel sleeps for 20 ms; without it a call with a small tensor takes less than one."""
    small = add_small_speeds(tmp_path)
    fault = "slow scaled_dot_product_attention float16"

    def measure():
        """None where one call took so long, on a busy machine, that no more were made."""
        _, answers, _ = run_child(["speed:attention"], SOFTMPS_FAULTS=fault, PYTHONPATH=small)
        return answers["speed:attention"]["seconds"].get("float16")

    assert wait_for(measure, "speed of float16")[0] >= 0.02


@pytest.mark.xdist_group("torch")  # imported into the test process
def test_autocast_that_is_silently_left_out():
    """torch only warns, and stays in float32; here by a dtype that the CPU's autocast has not."""
    torch = pytest.importorskip("torch")
    from mpsbar.dtypes import operations
    from mpsbar.dtypes.dtype_child import _Cases

    build, _ = operations.OPERATIONS["autocast"]
    cases = _Cases(torch, "cpu", operations, checks)
    changed = {**operations.OPERATIONS, "autocast": (build, ("float64",))}
    cases.operations = type(
        "Changed",
        (),
        {
            **vars(operations),
            "OPERATIONS": changed,
            "measure_error": staticmethod(operations.measure_error),
        },
    )
    answer = cases.run("autocast/float64")
    assert answer["state"] == "unsupported"
    assert "Disabling autocast" in answer["text"]
