"""What the programs train: a tiny model with random data, the same numbers in every run."""

import time

import torch

# Long enough for a few Frees to come in between.
STEPS = 60
STEP_SECONDS = 0.03


def pick_device():
    return "mps" if torch.backends.mps.is_available() else "cpu"


def make(device, seed=0):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    data = torch.randn(64, 8), torch.randn(64, 1)
    return model.to(device), tuple(each.to(device) for each in data)


def steps(device=None, seed=0, count=STEPS):
    """Yields the loss of each step; what it allocates beside it becomes cache."""
    device = device or pick_device()
    model, (inputs, targets) = make(device, seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(count):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        torch.ones(1000 * (1 + step % 7), device=device)
        yield loss.item()


def train(device=None, seed=0, count=STEPS, sleep=time.sleep):
    losses = []
    for loss in steps(device, seed, count):
        losses.append(loss)
        sleep(STEP_SECONDS)
    return losses


def show(losses):
    print("result", [round(loss, 6) for loss in losses[:: max(1, len(losses) // 8)]], flush=True)
