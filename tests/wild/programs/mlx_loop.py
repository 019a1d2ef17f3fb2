"""MLX: a loop whose buffers become cache."""

import time

import mlx.core as mx

mx.set_cache_limit(1 << 30)
weights = mx.zeros((8,))
inputs = mx.arange(64 * 8).reshape(64, 8) / 512
for step in range(60):
    gradient = mx.grad(lambda w: ((inputs @ w - 1) ** 2).mean())(weights)
    weights = weights - 0.1 * gradient
    mx.eval(weights, mx.ones((1000 * (1 + step % 7),)))
    time.sleep(0.03)
print("result", [round(value, 5) for value in weights.tolist()], flush=True)
