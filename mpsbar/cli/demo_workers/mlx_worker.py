"""A small MLX generator: the keys and values of an answer grow with each token, then are dropped.

Its cache limit is raised, so that what it drops stays in the cache.
"""

import os
import time

import mlx.core as mx

import mpsbar

_TOKENS = 300  # of an answer


def main() -> None:
    mx.set_cache_limit(1 << 30)
    arrays = [mx.ones((16 << 20,)) for _ in range(4)]
    mx.eval(arrays)
    del arrays[1:]
    weights = mx.ones((256, 256))
    mpsbar.attach()
    demo, kept = os.getppid(), []
    while os.getppid() == demo:  # nothing is left running, however the demo ends
        weights = mx.softmax(weights @ weights, axis=-1)
        kept.append(mx.ones((1 << 17,)))
        mx.eval(weights, kept[-1])
        if len(kept) == _TOKENS:
            kept.clear()
        time.sleep(0.04)


if __name__ == "__main__":
    main()
