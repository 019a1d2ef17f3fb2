"""A pool of forked processes that compute, and compile without graph breaks."""

import multiprocessing
import warnings

import torch
from small_model import show, train


def work(seed):
    warnings.simplefilter("error")
    compiled = torch.compile(torch.nn.Linear(2, 1), fullgraph=True, backend="eager")
    compiled(torch.ones(1, 2))
    return train("cpu", seed, 40)


if __name__ == "__main__":
    torch.set_num_threads(1)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for losses in pool.map(work, range(2), chunksize=1):
            show(losses)
