"""mlx_lm: greedy tokens of a tiny llama with random weights."""

import time

import mlx.core as mx
from mlx_lm.generate import generate_step
from mlx_lm.models import llama

mx.random.seed(0)
arguments = llama.ModelArgs(
    model_type="llama",
    hidden_size=32,
    num_hidden_layers=2,
    intermediate_size=64,
    num_attention_heads=2,
    num_key_value_heads=2,
    rms_norm_eps=1e-5,
    vocab_size=64,
)
model = llama.Model(arguments)
tokens = []
for token, _ in generate_step(mx.array([1, 2, 3]), model, max_tokens=60):
    tokens.append(int(token))
    time.sleep(0.03)
print("result", tokens, flush=True)
