"""eventlet that replaces threads and sockets after torch was imported."""

import warnings

import torch  # noqa: F401 - first
from small_model import show, train

warnings.simplefilter("ignore")
import eventlet  # noqa: E402

eventlet.monkey_patch()
jobs = [eventlet.spawn(train, None, seed, 30, eventlet.sleep) for seed in range(2)]
for job in jobs:
    show(job.wait())
