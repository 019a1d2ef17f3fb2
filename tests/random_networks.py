"""Random small networks of everyday parts, each made from a seed."""

import random

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class Residual(nn.Module):
    def __init__(self, *inner):
        super().__init__()
        self.inner = nn.Sequential(*inner)

    def forward(self, x):
        return x + self.inner(x)


class Scale(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


class Attention(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(x).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Experts(nn.Module):
    """Chooses two of four: a jump wherever two scores are close."""

    def __init__(self, width):
        super().__init__()
        self.gate, self.experts = (
            nn.Linear(width, 4),
            nn.ModuleList(nn.Linear(width, width) for _ in range(4)),
        )

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        every = torch.stack([expert(x) for expert in self.experts], -2)
        picked = every.gather(-2, chosen.unsqueeze(-1).expand(*chosen.shape, x.shape[-1]))
        return (weights.unsqueeze(-1) * picked).sum(-2)


class Recurrent(nn.Module):
    def __init__(self, kind, width):
        super().__init__()
        self.cells = kind(width, width, 2, batch_first=True, dropout=0.2)

    def forward(self, x):
        return self.cells(x)[0]


class Convolution(nn.Module):
    def __init__(self, width, groups):
        super().__init__()
        self.inner = nn.Conv1d(width, width, 3, padding=1, groups=groups)

    def forward(self, x):
        return self.inner(x.transpose(1, 2)).transpose(1, 2)


class Noise(nn.Module):
    def forward(self, x):
        return x + 0.1 * torch.randn_like(x)


PARTS = [
    lambda d: nn.Linear(d, d),
    nn.LayerNorm,
    nn.RMSNorm,
    lambda _: nn.GELU(),
    lambda _: nn.ReLU(inplace=True),
    lambda d: nn.Sequential(nn.Linear(d, 4 * d), nn.SiLU(), nn.Linear(4 * d, d)),
    lambda d: Residual(nn.LayerNorm(d), nn.Linear(d, d), nn.Tanh()),
    lambda d: Residual(Attention(d)),
    Experts,
    lambda d: Recurrent(nn.LSTM, d),
    lambda d: Recurrent(nn.GRU, d),
    lambda d: Convolution(d, 2),
    lambda _: nn.Dropout(0.3),
    lambda _: nn.Softmax(-1),
    lambda _: Scale(30.0),
    lambda _: Scale(0.01),
    lambda d: nn.TransformerEncoderLayer(d, 4, 2 * d, batch_first=True),
    lambda _: Noise(),
    lambda _: nn.Sigmoid(),
]


def make_network(seed):
    """(model, input), in training or evaluation mode."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    width = draw.choice([8, 32, 64])
    parts = [draw.choice(PARTS)(width) for _ in range(draw.randint(2, 6))]
    model = nn.Sequential(*parts, nn.Linear(width, draw.choice([1, 10])))
    size = draw.choice([0.1, 1.0, 10.0])
    return model.train(draw.random() < 0.5), size * torch.randn(
        draw.choice([1, 3, 8]), draw.choice([1, 5, 17]), width
    )
