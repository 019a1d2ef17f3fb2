"""A small MLX run whose cache limit is raised, so that freed arrays stay in the cache."""

import os
import time

import mlx.core as mx

import mpsbar


def main() -> None:
    mx.set_cache_limit(1 << 30)
    arrays = [mx.ones((16 << 20,)) for _ in range(4)]
    mx.eval(arrays)
    del arrays[1:]
    weights = mx.ones((256, 256))
    mpsbar.attach()
    demo = os.getppid()
    while os.getppid() == demo:  # nothing is left running, however the demo ends
        weights = mx.softmax(weights @ weights, axis=-1)
        mx.eval(weights)
        time.sleep(0.02)


if __name__ == "__main__":
    main()
