"""A pool of spawned processes that compute, as macOS starts them."""

import multiprocessing

from small_model import show, train

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for losses in pool.starmap(train, [(None, seed, 40) for seed in range(2)], chunksize=1):
            show(losses)
