"""mpsbar.compare on the software MPS device: every planted fault is attributed to the right module."""

import pytest
from compare_kit import FORWARD, NET, OPTIONS, TRAINING, needs_mps, run_many, run_script

pytestmark = [needs_mps, pytest.mark.starts_processes]

# Faults of several dtypes share one process: each imports torch.
RUNS = {
    "modules": (FORWARD, "wrong addmm float16; zero gelu bfloat16; wrong index_select float32"),
    "own operations": (FORWARD, "wrong scaled_dot_product_attention float16; wrong cumsum bfloat16; wrong native_batch_norm float32"),
    "refused": (FORWARD, "refuse:unimplemented cumsum float32; refuse:linear addmm bfloat16; fallback addmm float16"),
    "training": (TRAINING, "wrong gelu_backward float32; wrong native_layer_norm_backward float16; wrong nll_loss_forward bfloat16"),
    "loss": (TRAINING, "wrong nll_loss_backward float32; wrong _log_softmax_backward_data float16"),
}  # fmt: skip
# run, dtype, kind, module, what differs
PLANTED = [
    ("modules", "float16", "differs", "blocks.0.qkv", "output"),
    ("modules", "bfloat16", "differs", "blocks.0.act", "output"),
    ("modules", "float32", "differs", "embedding", "output"),
    ("own operations", "float32", "differs", "blocks.0.norm", "output"),
    # Operations that a module does itself, between its submodules.
    ("own operations", "float16", "differs", "blocks.0", "input 0 of blocks.0.out, call 1"),
    ("own operations", "bfloat16", "differs", "", "input 0 of head, call 1"),
    ("refused", "float32", "raised", "", None),
    ("refused", "bfloat16", "raised", "blocks.0.qkv", None),
    ("training", "float32", "differs", "blocks.0.act", "gradient of input 0"),
    ("training", "float16", "differs", "blocks.0.norm", "gradient of input 0"),
]


@pytest.fixture(scope="module")
def planted():
    return dict(zip(RUNS, run_many(list(RUNS.values())), strict=True))


@pytest.mark.parametrize(("run", "dtype", "kind", "module", "label"), PLANTED)
def test_the_module_at_fault_is_named(planted, run, dtype, kind, module, label):
    culprits = planted[run]["dtypes"][dtype]["culprits"]
    assert (culprits[0]["kind"], culprits[0]["module"]) == (kind, module)
    if label is not None:
        difference = culprits[0]["difference"]
        assert difference["label"] == label
        assert difference["largest"] > difference["tolerance"] >= 0
    assert len({culprit["type"] for culprit in culprits}) == 1, "no module without that kernel"


def test_what_only_received_wrong_values_is_distinguished(planted):
    found = planted["modules"]["dtypes"]["bfloat16"]
    assert {culprit["module"] for culprit in found["culprits"]} == {"blocks.0.act", "blocks.1.act"}
    assert "head" in found["followers"]


def test_a_loss_that_is_wrong_outside_of_every_module(planted):
    """The step's own operations are in no module: the output is off, and that is said."""
    found = planted["training"]["dtypes"]["bfloat16"]
    assert (found["state"], found["culprits"]) == ("differs", [])
    assert found["unexplained"]["largest"] > 0.1


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_gradients_that_are_wrong_outside_of_every_module(planted, dtype):
    """The loss is right and every module alone too: only the gradients of the whole run are off."""
    found = planted["loss"]["dtypes"][dtype]
    assert (found["state"], found["culprits"]) == ("differs", [])
    assert found["unexplained"]["label"].startswith("gradient of ")
    assert found["unexplained"]["largest"] > 10 * found["unexplained"]["tolerance"] > 0
    assert f"{dtype}: the gradient of " in planted["loss"]["headline"]
    assert planted["loss"]["dtypes"]["bfloat16"]["state"] == "works"


def test_a_gradient_that_is_no_number_outside_of_every_module():
    """The loss itself stays finite: only the device returns NaN for its derivative."""
    script = TRAINING.replace(
        "def step(model, numbers):",
        """class Derivative(torch.autograd.Function):
    @staticmethod
    def forward(ctx, loss):
        return loss.clone()
    @staticmethod
    def backward(ctx, grad):
        return grad if grad.device.type == "cpu" else grad * float("nan")

def step(model, numbers):
    return Derivative.apply(right_step(model, numbers))

def right_step(model, numbers):""",
    )
    found = run_script(script.replace("'float32', 'float16', 'bfloat16'", "'float32'"))
    assert found["dtypes"]["float32"]["state"] == "nonfinite"
    assert found["headline"].startswith("float32: NaN in the gradient of ")


def test_what_raises_is_reported_in_torchs_words(planted):
    found = planted["refused"]
    text = found["dtypes"]["float32"]["raised"]["text"]
    assert text.startswith(
        "NotImplementedError: The operator 'aten::cumsum' is not currently implemented for the MPS device."
    )
    assert (
        "float32: raises in the model itself: NotImplementedError: The operator 'aten::cumsum'"
        in found["headline"]
    )


def test_fall_backs_are_counted_by_module(planted):
    found = planted["refused"]["dtypes"]["float16"]
    assert found["state"] == "works"
    assert {(f["module"], f["operation"], f["times"]) for f in found["fallbacks"]} == {
        (name, "addmm", 1)
        for name in ("blocks.0.qkv", "blocks.0.out", "blocks.1.qkv", "blocks.1.out", "head")
    }


def test_a_number_too_large_for_float16_is_traced_to_its_origin():
    script = (
        NET
        + """
net.blocks[1].out.weight.data *= 1e6
compared = mpsbar.compare(net, numbers, timing=False, dtypes=["float16", "bfloat16"])
print(compared.to_json())
"""
    )
    found = run_script(script)
    assert found["dtypes"]["bfloat16"]["state"] == "works"
    assert found["dtypes"]["float16"]["nonfinite"]["module"] == "blocks.1.out"
    assert "blocks.1.out" in found["headline"]


def test_training_compares_losses_and_gradients():
    found = run_script(TRAINING)
    for dtype, most in (("float32", 1e-4), ("float16", 0.1), ("bfloat16", 0.6)):
        result = found["dtypes"][dtype]
        assert result["state"] == "works"
        assert result["loss"] == pytest.approx(found["reference"]["loss"], rel=0.01)
        assert result["gradients"]["compared"] == 15
        assert 0 < result["gradients"]["largest"] < most


def test_time_and_memory():
    script = (
        NET
        + """
wide = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
print(mpsbar.compare(wide, torch.randn(4, 512), dtypes=["float32", "float16"]).to_json())
"""
    )
    found = run_script(script, "slow addmm float16")
    float16 = found["dtypes"]["float16"]
    assert float16["seconds"] > 0.04  # twice 20 ms
    assert float16["speed_to_float32"] is not None
    assert found["reference"]["seconds"] > 0
    assert 0.4 < float16["peak_to_float32"] < 0.7
    slow = {row["module"] for row in found["slowest"] if (row["seconds"]["float16"] or 0) > 0.02}
    assert {"0", "2"} <= slow


def test_the_peak_in_a_torch_that_counts_none_is_read_between_modules():
    script = (
        NET
        + """
wide = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
print(mpsbar.compare(wide, torch.randn(4, 512), dtypes=["float32", "float16"]).to_json())
"""
    )
    counted = run_script(script)["dtypes"]
    sampled = run_script(script, SOFTMPS_TORCH="2.8.0")["dtypes"]
    for name in ("float32", "float16"):
        assert sampled[name]["peak_is_sampled"]
        assert not counted[name]["peak_is_sampled"]
        assert 0.8 * counted[name]["peak"] < sampled[name]["peak"] <= counted[name]["peak"]


def test_piecewise_finds_the_same():
    script = FORWARD.replace("timing=False", "timing=False, piecewise=True")
    found = run_script(script, "wrong addmm float16")
    assert found["dtypes"]["float16"]["culprits"][0]["module"] == "blocks.0.qkv"
    states = {name: result["state"] for name, result in found["dtypes"].items()}
    assert states == {"float32": "works", "float16": "differs", "bfloat16": "works"}


def test_a_model_that_does_not_fit_twice_is_compared_piece_by_piece():
    script = (
        NET
        + """
big = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(24)])  # 96 MB
print(mpsbar.compare(big, torch.randn(2, 1024), dtypes=["float16"], timing=False).to_json())
"""
    )
    found = run_script(
        script,
        SOFTMPS_MEMORY="64MiB",
        PYTORCH_MPS_HIGH_WATERMARK_RATIO="1.0",
        PYTORCH_MPS_LOW_WATERMARK_RATIO="0.9",
        SOFTMPS_HEAPS="0",
    )
    assert found["piecewise"] is True
    assert found["dtypes"]["float16"]["state"] == "works"
    assert found["notes"] == [
        "two copies of the model don't fit in memory: compared piece by piece"
    ]


def test_piecewise_gradients_are_checked_by_module_and_that_is_said():
    script = TRAINING.replace("timing=False", "timing=False, piecewise=True")
    assert script != TRAINING
    found = run_script(script, "wrong gelu_backward float16")
    culprits = found["dtypes"]["float16"]["culprits"]
    assert culprits
    assert found["dtypes"]["float32"]["culprits"] == []
    assert "compared piece by piece: gradients are checked per module only" in found["notes"]


TIED = """
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Embedding(20, 8))
    def forward(self, numbers):
        return self.inner(numbers) @ self.inner[0].weight.t()
print(mpsbar.compare(Tied(), torch.randint(0, 20, (2, 5)), piecewise=True, OPTIONS).to_json())
"""


def test_a_module_that_uses_the_weight_of_another_is_not_accused_piece_by_piece():
    script = NET + TIED.replace("OPTIONS", OPTIONS)
    found = run_script(script)["dtypes"]
    assert {name: result["state"] for name, result in found.items()} == dict.fromkeys(
        found, "works"
    )
    assert [result["unchecked"] for result in found.values()] == [[], [], []]
    found = run_script(script, "wrong mm float32; wrong index_select float16")["dtypes"]
    assert (found["float32"]["state"], found["float32"]["culprits"][0]["module"]) == ("differs", "")
    assert found["float16"]["culprits"][0]["module"] == "inner.0"


def test_a_weight_out_of_reach_piece_by_piece_is_unchecked_and_said():
    """Of a module beside it: it has no stand-in then, and the device is not at fault."""
    script = (
        NET
        + """
class Reader(nn.Module):
    def __init__(self, other):
        super().__init__()
        self.others = [other]
    def forward(self, x):
        return x @ self.others[0].weight.t()
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 8)
        self.reader = Reader(self.emb)
    def forward(self, numbers):
        return self.reader(self.emb(numbers))
"""
        + f"""
print(mpsbar.compare(Pair(), torch.randint(0, 20, (2, 5)), piecewise=True, {OPTIONS}).to_json())
"""
    )
    found = run_script(script)
    for dtype, result in found["dtypes"].items():
        assert (result["state"], result["culprits"]) == ("unchecked", [])
        assert result["not_run"]["module"] == result["unchecked"][0]["module"] == "reader"
        assert f"{dtype}: not known, reader could not be run piece by piece: " in found["headline"]


def test_a_dictionary_with_logits_has_a_top_1():
    script = (
        NET
        + """
class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 4)
    def forward(self, x):
        return {"logits": self.inner(x)}
print(mpsbar.compare(Named(), torch.randn(4, 8), dtypes=["float32"], timing=False).to_json())
"""
    )
    assert run_script(script)["dtypes"]["float32"]["output"]["same_top1"] == 1


NESTED = (
    NET
    + """
import dataclasses, typing
@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    more: dict
Pair = typing.NamedTuple("Pair", [("x", torch.Tensor), ("scale", float)])
class Outer(nn.Module):
    def __init__(self, take, give):
        super().__init__()
        self.take, self.give, self.inner, self.head = take, give, nn.Linear(8, 8), nn.Linear(8, 4)
    def forward(self, given):
        return self.give(self.head(self.inner(self.take(given)).relu()))
x = torch.randn(3, 8)
Kinds = {
    "dictionary": ({"a": {"b": [x]}, "n": 3}, lambda v: v["a"]["b"][0], lambda y: {"deep": [{"y": y}]}),
    "tuple": ((x, (1, None)), lambda v: v[0], lambda y: (y, y.sum())),
    "named tuple": (Pair(x, 2.0), lambda v: v.x * v.scale, lambda y: Pair(y, 1.0)),
    "dataclass": (Batch(x, {"mask": x > 0}), lambda v: v.x * v.more["mask"], lambda y: Batch(y, {})),
}
try:
    from transformers.modeling_outputs import BaseModelOutput
    Kinds["ModelOutput"] = (BaseModelOutput(last_hidden_state=x), lambda v: v.last_hidden_state,
                            lambda y: BaseModelOutput(last_hidden_state=y))
except ImportError:
    pass
found = {}
for name, (given, take, give) in Kinds.items():
    net = Outer(take, give)
    found[name] = mpsbar.compare(net, given, timing=False, dtypes=["float32", "float16"]).data
print(json.dumps(found))
"""
)


def test_nested_inputs_and_outputs_of_every_kind():
    for faults, state in (("", "works"), ("wrong addmm float16", "differs")):
        for kind, found in run_script(NESTED, faults).items():
            assert found["dtypes"]["float32"]["state"] == "works", kind
            float16 = found["dtypes"]["float16"]
            assert float16["state"] == state, kind
            assert {c["module"] for c in float16["culprits"]} == (
                {"inner", "head"} if faults else set()
            ), kind
            assert float16["output"]["largest"] is not None, f"{kind}: the output was not found"


def test_a_planted_nan_is_traced_to_its_module():
    found = run_script(FORWARD, "nan gelu float16")
    float16 = found["dtypes"]["float16"]
    assert (float16["state"], float16["nonfinite"]) == (
        "nonfinite", {"module": "blocks.0.act", "what": "NaN"},
    )  # fmt: skip
    assert found["dtypes"]["bfloat16"]["state"] == "works"
    assert "float16: NaN from blocks.0.act" in found["headline"]


def test_a_copy_is_compared_when_asked_and_the_model_itself_never_runs():
    script = (
        NET
        + """
ran = []
net.register_forward_hook(lambda module, *_: ran.append(module is net))
of_copy = mpsbar.compare(net, numbers, timing=False, copy=True, dtypes=["float32"]).data
alone = any(ran)
mpsbar.compare(net, numbers, timing=False, dtypes=["float32"])
print(json.dumps([of_copy["dtypes"]["float32"]["state"], alone, any(ran)]))
"""
    )
    assert run_script(script) == ["works", False, True]
