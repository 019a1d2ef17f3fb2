"""A small training run on the best device there is, which has freed most of what it allocated."""

import os
import time

import torch

import mpsbar


def choose_device() -> torch.device:
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def main() -> None:
    torch.set_num_threads(1)
    device = choose_device()
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    # Many small blocks and a few large ones; the caches are what they leave behind.
    small = [torch.ones(2048, device=device) for _ in range(4096)]
    large = [torch.ones(24 << 20, device=device) for _ in range(3)]
    del small[::2], small[64:], large
    data = torch.randn(32, 64, device=device)
    mpsbar.attach()
    demo = os.getppid()
    while os.getppid() == demo:  # nothing is left running, however the demo ends
        optimizer.zero_grad()
        loss = (model(data) - data).pow(2).mean()
        loss.backward()
        optimizer.step()
        time.sleep(0.02)


if __name__ == "__main__":
    main()
