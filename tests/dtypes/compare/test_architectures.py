"""Real architectures from their configurations, without weights: nothing wrong is found, and a planted fault is."""

import importlib.util

import pytest
from compare_kit import needs_mps, run_many, run_script
from fork_server import run_beside_mps

pytestmark = [
    needs_mps,
    pytest.mark.starts_processes,
    pytest.mark.skipif(
        importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
    ),
]

# What each process would import first, in three seconds.
LOAD_TRANSFORMERS = run_beside_mps("""
import transformers as t
t.BertForSequenceClassification, t.GPT2LMHeadModel, t.ViTForImageClassification, t.MambaForCausalLM
""")
START = """
import json, torch, torch.nn as nn, mpsbar
torch.set_num_threads(1)
results = {}
"""
EACH = """
torch.manual_seed(0)
MODEL
compared = mpsbar.compare(model.eval(), timing=False, dtypes=["float32", "float16", "autocast"], **inputs)
results["NAME"] = json.loads(compared.to_json())
"""
END = "print(json.dumps(results))\n"
SMALL = "hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64"
TOKENS = "{'input_ids': torch.randint(0, 100, (2, 9))}"
MODELS = {
    "bert": f"import transformers as t\nmodel, inputs = t.BertForSequenceClassification(t.BertConfig({SMALL}, vocab_size=100)), {TOKENS}",
    "gpt2": f"import transformers as t\nmodel, inputs = t.GPT2LMHeadModel(t.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=100, bos_token_id=0, eos_token_id=0)), {TOKENS}",
    "vit": f"import transformers as t\nmodel, inputs = t.ViTForImageClassification(t.ViTConfig({SMALL}, image_size=32, patch_size=8)), {{'pixel_values': torch.randn(2, 3, 32, 32)}}",
    "mamba": f"import transformers as t\nmodel, inputs = t.MambaForCausalLM(t.MambaConfig(hidden_size=16, num_hidden_layers=2, vocab_size=100, state_size=4)), {TOKENS}",
    "unet": """
class Down(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.SiLU())
        self.pool = nn.MaxPool2d(2)
    def forward(self, x):
        x = self.body(x)
        return self.pool(x), x
class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.middle = Down(3, 8), Down(8, 16), nn.Conv2d(16, 16, 3, padding=1)
        self.up, self.out = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 3, 3, padding=1)
        self.last = nn.Upsample(scale_factor=2, mode="bilinear")
    def forward(self, image):
        x, first = self.one(image)
        x, second = self.two(x)
        x = self.up(self.middle(x))
        return self.out(torch.cat([self.last(x), first], 1))
model, inputs = UNet(), {"image": torch.randn(2, 3, 16, 16)}""",
    "lstm": """
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.cells, self.tags = nn.Embedding(100, 16), nn.LSTM(16, 16, 2, bidirectional=True), nn.Linear(32, 5)
    def forward(self, input_ids):
        packed = nn.utils.rnn.pack_padded_sequence(self.words(input_ids), torch.tensor([9, 6]), batch_first=True)
        return self.tags(nn.utils.rnn.pad_packed_sequence(self.cells(packed)[0], batch_first=True)[0])
model, inputs = Tagger(), {"input_ids": torch.randint(0, 100, (2, 9))}""",
}  # fmt: skip
# A fault for each, and the module that must be named first.
FAULTS = {
    "bert": ("wrong tanh float16", "bert.pooler.activation"),
    "gpt2": ("wrong tanh float16", "transformer.h.0.mlp.act"),
    "vit": ("wrong convolution float16", "vit.embeddings.patch_embeddings.projection"),
    "mamba": ("wrong convolution float16", "backbone.layers.0.mixer"),
    "unet": ("wrong max_pool2d_with_indices float16", "one.pool"),
    "lstm": ("wrong index_select float16", "words"),
}


def compare_models(names):
    """A script for these models, in one process."""
    each = [EACH.replace("MODEL", MODELS[name]).replace("NAME", name) for name in names]
    return START + "".join(each) + END


@pytest.fixture(scope="module")
def sound():
    return run_script(compare_models(MODELS), after=LOAD_TRANSFORMERS)


@pytest.fixture(scope="module")
def planted():
    by_fault = {}
    for name, (fault, _) in FAULTS.items():
        by_fault.setdefault(fault, []).append(name)
    jobs = [(compare_models(names), fault) for fault, names in by_fault.items()]
    return {
        name: found
        for results in run_many(jobs, after=LOAD_TRANSFORMERS)
        for name, found in results.items()
    }


@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_wrong_where_nothing_is(sound, name):
    for dtype, found in sound[name]["dtypes"].items():
        wrong = [c for c in found["culprits"] if c["kind"] != "raised"]
        assert (wrong, found["unexplained"], found["nonfinite"]) == ([], None, None)
        if found["state"] == "raised":  # as in the random networks
            assert dtype.startswith("autocast")
            assert "RNN input dtype" in found["raised"]["text"]
        assert found["unchecked"] == []


@pytest.mark.parametrize("name", MODELS)
def test_the_culprit_is_named(planted, name):
    found = planted[name]["dtypes"]["float16"]
    assert found["state"] == "differs"
    assert found["culprits"][0]["module"] == FAULTS[name][1]
    assert planted[name]["dtypes"]["float32"]["state"] == "works"
