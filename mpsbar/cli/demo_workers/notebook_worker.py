"""A notebook that nobody uses any more: it still holds a model and the cache of its last cell."""

import os
import time

import torch

import mpsbar


def main() -> None:
    torch.set_num_threads(1)
    device = "mps" if torch.backends.mps.is_available() else "cpu"
    # Of 4 MB each: those of 10 MB and more would share the 1 GB of the last cell, and keep it.
    model = [torch.ones(1 << 20, device=device) for _ in range(24)]
    last_cell = [torch.ones(8 << 20, device=device) for _ in range(3)]
    del last_cell
    mpsbar.attach()
    demo = os.getppid()
    while os.getppid() == demo and model:  # nothing is left running, however the demo ends
        time.sleep(0.5)


if __name__ == "__main__":
    main()
