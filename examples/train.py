"""A training loop as anybody's: mpsbar run python examples/train.py"""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=500)
steps = parser.parse_args().steps

device = "mps" if torch.backends.mps.is_available() else "cpu"
model = torch.nn.Sequential(
    torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)
).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(steps):
    batch = torch.randn(64, 512, device=device)
    loss = torch.nn.functional.mse_loss(model(batch), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item():.3f}", flush=True)
