"""A script that attaches by itself and loads its data in two child processes."""

import argparse

import torch
from torch.utils.data import DataLoader, Dataset

import mpsbar


class Numbers(Dataset):
    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((256,), float(index))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    steps = parser.parse_args().steps
    print("attached:", mpsbar.attach())
    device = mpsbar.get_device()
    total = torch.zeros((), device=device)
    for batch in DataLoader(Numbers(8 * steps), batch_size=8, num_workers=2):
        total += batch.to(device).mean()
    print(f"mean of {8 * steps} items: {total.item() / steps:.1f}")
    print("held:", mpsbar.memory().get("held", "not known"))


if __name__ == "__main__":  # the children import this file
    main()
