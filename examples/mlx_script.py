"""The same for MLX: mpsbar run python examples/mlx_script.py"""

import argparse

import mlx.core as mx

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=500)
steps = parser.parse_args().steps

weights = mx.random.normal((512, 512))
for step in range(steps):
    weights = weights - 0.01 * mx.tanh(weights @ weights.T / 512) @ weights
    mx.eval(weights)
    if step % 10 == 0:
        print(f"step {step}: norm {mx.linalg.norm(weights).item():.1f}", flush=True)
