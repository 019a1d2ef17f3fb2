"""IPython: its prompt, fed with lines, as in a terminal without one."""

import subprocess
import sys

LINES = """
import torch
from small_model import show, train
losses = train(count=40)
%time _ = 1
losses += train(seed=1, count=20); show(losses)
exit
"""
command = [sys.executable, "-m", "IPython", "--quick", "--simple-prompt", "--no-banner",
           "--HistoryManager.enabled=False", "--no-term-title", "--colors=nocolor"]  # fmt: skip
done = subprocess.run(command, input=LINES, text=True, stdout=subprocess.PIPE)
for line in done.stdout.splitlines():
    print(line[line.find("result") :] if "result" in line else "", flush=True)
print("result ended with", done.returncode, flush=True)
