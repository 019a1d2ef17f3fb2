"""PyInstaller: a frozen program that attaches by itself and computes with MLX."""

import os
import subprocess
import sys
import tempfile

PROGRAM = """
import time
import mlx.core as mx
import mpsbar
mpsbar.attach()
mx.set_cache_limit(1 << 30)
total = mx.zeros((8,))
for step in range(60):
    total = total + mx.arange(8) * step
    mx.eval(total, mx.ones((1000 * (1 + step % 7),)))
    time.sleep(0.03)
print("result", total.tolist(), flush=True)
"""
here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(os.path.dirname(here)))
with tempfile.TemporaryDirectory() as folder:
    script = os.path.join(folder, "frozen_app.py")
    with open(script, "w") as file:
        file.write(PROGRAM)
    build = [
        sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level=ERROR", "--paths", root,
        "--collect-all", "mlx", "--exclude-module", "torch",
        "--distpath", folder, "--workpath", os.path.join(folder, "work"), "--specpath", folder,
        script,
    ]  # fmt: skip
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run(build, check=True, env=plain | {"MPSBAR_DISABLE": "1"}, stdout=sys.stderr)
    program = os.path.join(folder, "frozen_app", "frozen_app")
    print("result ended with", subprocess.run([program]).returncode, flush=True)
