"""Training gives the results the CPU gives."""

import pytest
from device_child import Child

COMPARE = """
import copy
from torch import nn
torch.manual_seed(0)
class First(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, value):
        return self.inner(value)[0]
def train(net, batch, steps=4):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = net(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
net, batch = (MODEL)
other = copy.deepcopy(net).to("mps")
torch.testing.assert_close(train(net, batch), train(other, batch.to("mps")))
for p, q in zip(net.parameters(), other.parameters()):
    assert q.device.type == "mps"
    torch.testing.assert_close(p, q.cpu())
answer = "equal"
"""


MODELS = {
    "mlp": """nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 4)),
              torch.randn(8, 32)""",
    "convolution": """nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.GELU(),
                      nn.MaxPool2d(2), nn.Flatten(), nn.Linear(392, 4)),
                      torch.randn(4, 3, 16, 16)""",
    "attention": """nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0),
                    torch.randn(2, 5, 32)""",
    "embedding": """nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 3)),
                    torch.randint(0, 10, (4, 6))""",
    "lstm": """First(nn.LSTM(4, 6, batch_first=True)), torch.randn(2, 5, 4)""",
}


# With the others that use the device: the first optimizer of a child imports torch._dynamo, a second of a core.
@pytest.mark.xdist_group("shared in softmps")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("mode", ["device", "queued"])
def test_training_equals_the_cpu(request: pytest.FixtureRequest, mode: str, model: str) -> None:
    child: Child = request.getfixturevalue(mode)
    assert child.ask(COMPARE.replace("MODEL", MODELS[model])) == "equal"


def test_adamw_autocast_and_scaler(device: Child) -> None:
    assert device.ask("""
    net = torch.nn.Linear(4, 4).to("mps")
    optimizer = torch.optim.AdamW(net.parameters())
    scaler = torch.amp.GradScaler("mps", init_scale=8.0)
    with torch.autocast("mps", torch.float16):
        out = net(torch.ones(2, 4, device="mps"))
    before = net.weight.detach().clone()
    scaler.scale(out.float().sum()).backward()
    scaler.step(optimizer); scaler.update()
    answer = [str(out.dtype), bool((before != net.weight).any())]
    """) == ["torch.float16", True]


def test_a_seed_gives_the_same_numbers(device: Child) -> None:
    assert device.ask("""
    torch.manual_seed(3); on_cpu = torch.randn(5)
    torch.manual_seed(3); on_mps = torch.randn(5, device="mps")
    answer = torch.equal(on_cpu, on_mps.cpu())
    """)


def test_saved_tensors_come_back_to_the_device(device: Child) -> None:
    assert device.ask("""
    import io
    file = io.BytesIO()
    torch.save(torch.arange(5, device="mps")[1:], file)
    file.seek(0)
    loaded = torch.load(file)
    answer = [loaded.device.type, loaded.tolist()]
    """) == ["mps", [1, 2, 3, 4]]
