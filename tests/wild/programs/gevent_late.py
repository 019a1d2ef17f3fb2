"""gevent that replaces threads and sockets after torch was imported."""

import warnings

import torch  # noqa: F401 - first
from small_model import show, train

warnings.simplefilter("ignore")
from gevent import monkey  # noqa: E402

monkey.patch_all()
import gevent  # noqa: E402

jobs = [gevent.spawn(train, None, seed, 30, gevent.sleep) for seed in range(2)]
gevent.joinall(jobs)
for job in jobs:
    show(job.value)
