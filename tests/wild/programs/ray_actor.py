"""Ray: an actor in a process of its own."""

import os
import secrets
import sys

os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
# Else Ray leaves a token in the home folder.
os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
import ray
from small_model import show, train


def start():
    """Again if need be: Ray's own agents have 15 seconds to import all they need (issue 65983)."""
    for _ in range(6):
        try:
            return ray.init(
                num_cpus=1, include_dashboard=False, logging_level="ERROR", log_to_driver=False
            )
        except Exception as error:
            ray.shutdown()
            problem = error
    sys.exit(f"ray.init: {problem}")


@ray.remote
class Trainer:
    def work(self, seed):
        return train(None, seed, 40)


start()
trainer = Trainer.remote()
for seed in range(2):
    show(ray.get(trainer.work.remote(seed)))
ray.shutdown()
