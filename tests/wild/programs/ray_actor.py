"""Ray: an actor in a process of its own."""

import os

os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
import ray
from small_model import show, train

ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR", log_to_driver=False)


@ray.remote
class Trainer:
    def work(self, seed):
        return train(None, seed, 40)


trainer = Trainer.remote()
for seed in range(2):
    show(ray.get(trainer.work.remote(seed)))
ray.shutdown()
