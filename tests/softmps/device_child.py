"""A child process with the device, that runs pieces of code and hands back what they found."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import TracebackType
from typing import Any

from fork_server import run_python, start_python

# Importing torch takes 2 s alone and many times that when the cores are taken.
CHILD_TIMEOUT_S = 300

SERVER = """
import gc, json, sys, threading, time
import torch
ops = torch.ops.softmps
MiB = 1 << 20
def counters():
    return dict(ops.counters())
def block(size, **kind):
    return torch.empty(size, dtype=torch.uint8, device="mps", **kind)
gc.freeze()  # what import torch left behind need not be searched after each piece
for line in sys.stdin:
    space = dict(globals())
    try:
        exec(json.loads(line), space)
        reply = {"answer": space.get("answer")}
    except Exception as error:
        reply = {"error": type(error).__name__, "text": str(error)}
    space.clear()
    gc.collect()
    print(json.dumps(reply), flush=True)
"""


class ChildError(Exception):
    """The code in the child raised; `kind` is the name of the exception's class."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def environment(switches: dict[str, str]) -> dict[str, str]:
    """This process's variables with the device on and only these switches set."""
    others = {k: v for k, v in os.environ.items() if not k.startswith(("SOFTMPS_", "PYTORCH_MPS_"))}
    cache = {k: v for k, v in os.environ.items() if k == "SOFTMPS_CACHE"}
    return others | cache | {"SOFTMPS": "1"} | switches


def run_child(code: str, **switches: str) -> subprocess.CompletedProcess[str]:
    """Run the code in a child of its own, to its end."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return run_python(command, env=environment(switches), cwd=Path.cwd(), timeout=CHILD_TIMEOUT_S)


def answer_of(code: str, **switches: str) -> Any:
    """Run the code in a child of its own, which must end well, and read what it printed as JSON."""
    done = run_child(code, **switches)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Child:
    """One child for many tests: each piece of code gets names of its own."""

    def __init__(self, **switches: str) -> None:
        self.process = start_python(
            [sys.executable, "-c", SERVER], env=environment(switches), cwd=Path.cwd(),
            stdin=subprocess.PIPE, stderr=None,
        )  # fmt: skip

    def ask(self, code: str) -> Any:
        """Run the code in the child; what it assigned to `answer` comes back."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(textwrap.dedent(code)).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the child ended with status {self.process.wait(CHILD_TIMEOUT_S)}"
        reply = json.loads(line)
        if "error" in reply:
            raise ChildError(reply["error"], reply["text"])
        return reply["answer"]

    def __enter__(self) -> "Child":  # noqa: PYI034  # Self is not in 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.process.communicate(timeout=CHILD_TIMEOUT_S)
