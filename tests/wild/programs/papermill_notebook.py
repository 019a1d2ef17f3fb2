"""papermill: a notebook run from beginning to end, with a parameter."""

import json
import logging
import os
import sys
import tempfile
from pathlib import Path

import papermill

logging.disable(logging.WARNING)


def cell(source, *tags):
    return {"cell_type": "code", "source": source, "metadata": {"tags": list(tags)},
            "outputs": [], "execution_count": None, "id": f"c{abs(hash(source)) % 10**8}"}  # fmt: skip


CELLS = [
    cell("seed = 0", "parameters"),
    cell("import torch\nfrom small_model import show, train"),
    cell("show(train(seed=seed, count=50))"),
]
SPEC = {"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "this Python", "language": "python"}  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    kernel = Path(folder, "kernels", "wild")
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(json.dumps(SPEC))
    os.environ["JUPYTER_PATH"] = folder
    notebook, done = Path(folder, "in.ipynb"), Path(folder, "out.ipynb")
    page = {"cells": CELLS, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    notebook.write_text(json.dumps(page))
    papermill.execute_notebook(
        str(notebook), str(done), {"seed": 3}, kernel_name="wild", language="python",
        progress_bar=False,
    )  # fmt: skip
    for each in json.loads(done.read_text())["cells"]:
        for output in each["outputs"]:
            print("".join(output.get("text", [])), end="", flush=True)
