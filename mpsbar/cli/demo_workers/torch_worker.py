"""A small training run on the best device there is, whose inputs grow: so does its cache."""

import importlib
import os
import time
from collections.abc import Iterable

import torch

import mpsbar

_STEPS = 3000  # of an epoch: a minute or two
_LONGEST = 8  # times the shortest input


def choose_device() -> torch.device:
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def count_steps(epoch: int) -> Iterable[int]:
    """With tqdm's bar, where it is installed, so that mpsbar can tell how far the run is."""
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        return range(_STEPS)
    nowhere = open(os.devnull, "w")  # noqa: SIM115, PTH123 - the terminal is mpsbar's
    steps: Iterable[int] = tqdm(range(_STEPS), desc=f"Epoch {epoch}", file=nowhere)
    return steps


def main() -> None:
    torch.set_num_threads(1)
    device = choose_device()
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    # Many small blocks and a few large ones; the caches are what they leave behind.
    small = [torch.ones(2048, device=device) for _ in range(4096)]
    large = [torch.ones(24 << 20, device=device) for _ in range(2)]
    del small[::2], small[64:], large
    mpsbar.attach()
    demo, epoch = os.getppid(), 0
    while True:
        epoch += 1
        for step in count_steps(epoch):
            if os.getppid() != demo:  # nothing is left running, however the demo ends
                return
            length = 1 + step // 60 % _LONGEST
            kept = torch.empty(length << 22, device=device) if step % 60 < 40 else None
            data = torch.randn(16 * length, 64, device=device)
            optimizer.zero_grad()
            loss = (model(data) - data).pow(2).mean()
            loss.backward()
            optimizer.step()
            time.sleep(0.03)
            del kept


if __name__ == "__main__":
    main()
