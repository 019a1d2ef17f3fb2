"""Two ranks of torchrun that add their gradients."""

import os
import subprocess
import sys
import time

import torch
from small_model import pick_device


def rank():
    from torch import distributed

    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    device = pick_device()
    weights = torch.zeros(8, device=device)
    for step in range(40):
        gradient = torch.full((8,), float(distributed.get_rank() + step))
        distributed.all_reduce(gradient)
        weights -= 0.01 * gradient.to(device)  # gloo adds on the CPU
        time.sleep(0.03)
    if distributed.get_rank() == 0:
        print("result", round(weights.sum().item(), 4), flush=True)
    distributed.destroy_process_group()


if "RANK" in os.environ:
    rank()
else:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    sys.exit(subprocess.run([*command, __file__]).returncode)
