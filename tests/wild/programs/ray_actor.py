"""Ray: an actor in a process of its own.

Ray gives the ports of its agents 15 seconds to be told, on a busy machine too few (ray issue
65983); ports that are given need not be told, and only `ray start` takes them.
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time

os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
import ray
from small_model import show, train


def find_free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@ray.remote
class Trainer:
    def work(self, seed):
        return train(None, seed, 40)


folder = tempfile.TemporaryDirectory(prefix="ray", dir="/tmp")
port, *agents = find_free_ports(5)
names = "dashboard-agent-listen", "dashboard-agent-grpc", "runtime-env-agent", "metrics-export"
head = subprocess.Popen(
    [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=1",
     "--include-dashboard=false", "--disable-usage-stats", "--node-ip-address=127.0.0.1",
     f"--port={port}", f"--temp-dir={folder.name}", "--object-store-memory=100000000",
     *(f"--{name}-port={agent}" for name, agent in zip(names, agents, strict=True))],
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
)  # fmt: skip
while True:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        break
    except OSError:
        if head.poll() is not None:
            sys.exit(f"ray start ended with {head.returncode}")
        time.sleep(0.2)
ray.init(f"127.0.0.1:{port}", logging_level="ERROR", log_to_driver=False)
trainer = Trainer.remote()
for seed in range(2):
    show(ray.get(trainer.work.remote(seed)))
ray.shutdown()
head.send_signal(signal.SIGTERM)
head.wait(60)
