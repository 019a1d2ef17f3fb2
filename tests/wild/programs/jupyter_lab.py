"""JupyterLab: its server, a kernel by its REST interface, cells over its web socket."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid

from tornado.websocket import websocket_connect

with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
address = f"127.0.0.1:{port}/api/kernels"
folder = os.path.dirname(os.path.abspath(__file__))
CELLS = [
    "import torch\nfrom small_model import show, train",
    "losses = train(count=40)",
    "losses += train(seed=1, count=20); show(losses)",
]


def wait_until_ready(server):
    while True:
        try:
            return urllib.request.urlopen(f"http://{address}", timeout=30).close()
        except OSError:
            if server.poll() is not None:
                sys.exit(f"the server ended with {server.returncode}")
            time.sleep(0.2)


def start_kernel():
    request = urllib.request.Request(f"http://{address}", b"{}", method="POST")
    with urllib.request.urlopen(request, timeout=120) as page:
        return json.load(page)["id"]


async def run(kernel):
    link = await websocket_connect(f"ws://{address}/{kernel}/channels")
    for code in CELLS:
        header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "session": "wild",
                  "username": "", "version": "5.3"}  # fmt: skip
        content = {"code": code, "silent": False}
        await link.write_message(
            json.dumps(
                {
                    "header": header,
                    "parent_header": {},
                    "metadata": {},
                    "content": content,
                    "channel": "shell",
                }
            )
        )
        while True:
            message = json.loads(await link.read_message())
            if message["parent_header"].get("msg_id") != header["msg_id"]:
                continue
            if message["msg_type"] == "stream":
                print(message["content"]["text"], end="", flush=True)
            if message["msg_type"] == "execute_reply":
                assert message["content"]["status"] == "ok", message["content"]
                break
    link.close()


with tempfile.TemporaryDirectory() as home:
    os.environ |= {
        "JUPYTER_DATA_DIR": home,
        "JUPYTER_RUNTIME_DIR": home,
        "JUPYTER_CONFIG_DIR": home,
    }
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "jupyterlab",
            "--no-browser",
            "--allow-root",
            f"--port={port}",
            "--ip=127.0.0.1",
            "--IdentityProvider.token=",
            "--ServerApp.disable_check_xsrf=True",
            f"--ServerApp.root_dir={folder}",
            "--log-level=ERROR",
        ]
    )
    wait_until_ready(server)
    asyncio.run(run(start_kernel()))
    server.send_signal(signal.SIGTERM)
    print("result ended with", server.wait(60), flush=True)
