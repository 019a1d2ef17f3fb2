"""mpsbar.compare leaves the model as it was: parameters, mode, hooks, gradients, random numbers; also on Ctrl-C."""

import pytest
from compare_kit import NET, needs_mps, run_script
from thorough import two_sizes

pytestmark = [needs_mps, pytest.mark.starts_processes]

LOOK = """
import random, numpy

class Stateful(nn.Module):
    '''Batch statistics, a cache, a counter, a list, dropout, tied weights, an old-style weight norm and an LSTM.'''
    def __init__(self):
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(8), nn.Dropout(0.5)
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.second.weight = self.first.weight
        self.lstm = nn.LSTM(8, 8, 2, dropout=0.3, batch_first=True)
        self.cache, self.calls, self.seen, self.scale = None, 0, [], torch.ones(8)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
    def forward(self, x):
        self.calls += 1
        self.seen.append(x.shape)
        self.steps += 1
        self.cache = x
        self.scale.mul_(0.5)
        x = self.second(self.drop(self.norm(self.first(x))))
        return self.lstm(x[None])[0][0] + torch.randn_like(x)

model = Stateful()
model.second.eval()
model.first.register_forward_hook(lambda module, args, output: None)
torch.nn.utils.parametrizations.spectral_norm(model.first)
model(torch.randn(4, 8)).sum().backward()
inputs = torch.randn(4, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)

def look():
    state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    return dict(
        state={n: (t.dtype, str(t.device), t.tolist()) for n, t in state.items()},
        objects=[id(p) for p in model.parameters()] + [id(b) for b in model.buffers()],
        grads=[(id(p.grad), p.grad.tolist()) for p in model.parameters() if p.grad is not None],
        versions=[p._version for p in model.parameters()],
        modes=[m.training for m in model.modules()],
        hooks=[list(map(id, h.values())) for m in model.modules() for h in (m._forward_hooks, m._forward_pre_hooks)],
        others=(id(model.cache), model.calls, list(model.seen), model.scale.tolist(), model.lstm.dropout,
                [id(w) for w in model.lstm._flat_weights], model.second.weight is model.first.parametrizations.weight.original),
        dictionaries=[sorted(vars(m)) for m in model.modules()],
        random=(torch.get_rng_state().tolist(), random.getstate(), numpy.random.get_state()[1].tolist()),
        globals=(torch.is_grad_enabled(), torch.get_default_dtype(), torch.is_warn_always_enabled(), torch.is_autocast_enabled("mps")),
        inputs=(inputs.tolist(), inputs.dtype, str(inputs.device)),
    )

def changed(before):
    after = look()
    return [name for name in before if before[name] != after[name]]
"""


def test_all_is_as_it_was():
    script = (
        NET
        + LOOK
        + """
import warnings
before = look()
filters = list(warnings.filters)
compared = mpsbar.compare(model, inputs)
found = {"forward": changed(before), "lost": compared.data["not_restored"], "filters": filters == list(warnings.filters)}

def train(model, x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss

compared = mpsbar.compare(train, model, inputs, timing=False)
found["training"] = changed(before)
found["gradients"] = compared.data["dtypes"]["float32"]["gradients"]["compared"]
found["states"] = [f["state"] for f in compared.data["dtypes"].values()]
print(json.dumps(found))
"""
    )
    found = run_script(script)
    assert found["forward"] == found["training"] == found["lost"] == []
    assert found["filters"] is True
    assert found["gradients"] > 8
    assert "differs" not in found["states"]


def test_a_model_on_the_device_stays_there():
    script = (
        NET
        + LOOK
        + """
net = Net().to("mps", torch.bfloat16)
ids = [(id(p), str(p.device), p.dtype, p._version) for p in net.parameters()]
compared = mpsbar.compare(net, numbers.to("mps"), timing=False, dtypes=["float16"])
print(json.dumps({"same": ids == [(id(p), str(p.device), p.dtype, p._version) for p in net.parameters()], "state": compared.data["dtypes"]["float16"]["state"]}))
"""
    )
    assert run_script(script) == {"same": True, "state": "works"}


@two_sizes("tries", small=[10], whole=[100])
def test_ctrl_c_at_any_moment_leaves_all_restored(tries):
    """Real signals, spread over all calls and returns of a comparison: there Python handles them."""
    script = (
        NET
        + LOOK
        + """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # may be ignored by whoever started us
before = look()
mpsbar.compare(model, inputs, timing=False)  # imports what it needs, so that all others are alike

def compare(interrupt_at=None):
    count = 0
    def on_event(frame, event, arg):
        nonlocal count
        count += 1
        if count == interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)
    sys.setprofile(on_event)
    try:
        mpsbar.compare(model, inputs, timing=False)
    finally:
        sys.setprofile(None)
    return count

moments = compare()
problems, finished = [], []
for number in range(TRIES):
    interrupt_at = moments * (2 * number + 1) // (2 * TRIES)
    try:
        compare(interrupt_at)
        finished.append(interrupt_at)
    except KeyboardInterrupt:
        pass
    problems += changed(before)
print(json.dumps({"problems": problems, "finished": finished, "moments": moments, "handler": signal.getsignal(signal.SIGINT) is signal.default_int_handler}))
"""
    )
    found = run_script(f"TRIES = {tries}\n" + script)
    assert found["problems"] == []
    assert found["handler"] is True
    assert found["moments"] > 1000
    assert found["finished"] == []


def test_an_exception_of_the_model_on_the_cpu_is_the_users():
    script = (
        NET
        + """
class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
    def forward(self, x):
        self.inner(x)
        raise KeyError("mine")
model = Broken()
weight = model.inner.weight
try:
    mpsbar.compare(model, torch.ones(1, 2))
except KeyError as error:
    print(json.dumps([str(error), model.inner.weight is weight, len(model._forward_hooks)]))
"""
    )
    assert run_script(script) == ["'mine'", True, 0]


HOLDING = """
class Cache:
    def __init__(self):
        self.keys, self.layers, self.length = torch.zeros(3), {"k": [torch.zeros(2)]}, 0

class Refuses(dict):
    def clear(self):
        raise TypeError("it keeps everything")

class Holding(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.ring, self.byname, self.pair = [torch.zeros(2)], {"k": torch.zeros(2)}, (torch.zeros(2),)
        self.cache, self.kept = Cache(), Refuses()
    def forward(self, x):
        self.ring[0] += 1
        self.byname["k"].add_(1)
        self.pair[0].fill_(1)
        self.cache.keys.add_(1)
        self.cache.layers["k"][0].mul_(0).add_(1)
        self.cache.layers["k"].append(x)
        self.cache.length += 1
        self.kept["new"] = 1
        return self.inner(x)
model = Holding()
def look():
    c = model.cache
    return [model.ring[0].tolist(), model.byname["k"].tolist(), model.pair[0].tolist(), c.keys.tolist(),
            [t.tolist() for t in c.layers["k"]], c.length]
before = look()
"""


def test_tensors_in_containers_and_objects_are_restored_and_what_is_not_is_said():
    script = (
        NET
        + HOLDING
        + """
compared = mpsbar.compare(model, torch.ones(1, 2), timing=False, dtypes=["float32"])
print(json.dumps([before == look(), look(), compared.data["not_restored"]]))
"""
    )
    same, found, lost = run_script(script)
    assert same, found
    assert lost == ["kept was changed by the model"]


def test_a_step_is_told_that_its_scheduler_is_not_restored():
    script = (
        NET
        + """
compared = mpsbar.compare(step, net, numbers, timing=False, dtypes=["float32"])
print(json.dumps(str(compared)))
"""
    )
    note = "Note: objects outside the model, such as a scheduler, are not restored."
    assert note in run_script(script)
