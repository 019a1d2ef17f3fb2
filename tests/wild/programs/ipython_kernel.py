"""A Jupyter kernel that trains in its cells."""

import os
import sys

from jupyter_client.manager import KernelManager

manager = KernelManager()
manager.kernel_spec.argv[0] = sys.executable
manager.start_kernel(env=dict(os.environ), cwd=os.path.dirname(os.path.abspath(__file__)))
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=120)


def run(cell):
    def show(message):
        if message["msg_type"] == "stream":
            print(message["content"]["text"], end="", flush=True)

    reply = client.execute_interactive(cell, output_hook=show, timeout=120)
    assert reply["content"]["status"] == "ok", reply


run("import time, torch\nfrom small_model import show, train")
run("losses = train(count=30)")
run("time.sleep(1)")
run("losses += train(seed=1, count=30); show(losses)")
client.stop_channels()
manager.shutdown_kernel()
