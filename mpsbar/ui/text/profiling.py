"""The snippet of How to Profile…: to be pasted around a few steps of one's own. Pure."""

SNIPPET = """\
# Where does the time go? Put a few of your own steps into train_steps().
import torch
from torch.profiler import ProfilerActivity, profile


def train_steps():
    ...


train_steps()  # warm up: the first steps compile and allocate

# 1. The operations that are called, how often, and what they allocate.
with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True) as seen:
    train_steps()
    if torch.backends.mps.is_available():
        torch.mps.synchronize()  # else only the queueing is timed
print(seen.key_averages().table(sort_by="self_cpu_time_total", row_limit=20))

# 2. What the GPU does: record this with Instruments (template Logging, instrument os_signpost).
if torch.backends.mps.is_available():
    with torch.mps.profiler.profile(mode="interval", wait_until_completed=False):
        train_steps()
"""
