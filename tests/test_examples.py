"""The examples, run as examples/README.md says: they end well, and their agent answers."""

import json
import subprocess
import sys

import pytest
from agent.test_notebook import kernels  # noqa: F401 - the fixture
from worker_kit import NO_MPS, ROOT, TIMEOUT, need_module

EXAMPLES = ROOT / "examples"
pytestmark = pytest.mark.starts_processes


def run(workers, *command):
    done = subprocess.run(
        [sys.executable, *command], cwd=workers.folder, capture_output=True, text=True, timeout=TIMEOUT,
        env=workers.env(PYTHONPATH=str(ROOT), SOFTMPS="1", CUDA_VISIBLE_DEVICES=""),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(("name", "module"), [("train.py", "torch"), ("mlx_script.py", "mlx.core")])
def test_under_mpsbar_run(workers, name, module):
    need_module(module)
    command = ("-m", "mpsbar", "run", "--summary", sys.executable, EXAMPLES / name, "--steps", "11")
    done = run(workers, *command)
    assert "step 10: " in done.stdout
    assert name in done.stderr  # the summary is of a process that was connected
    assert "Traceback" not in done.stderr


def test_the_data_loader_attaches_by_itself(workers):
    need_module("torch")
    done = run(workers, EXAMPLES / "data_loader.py", "--steps", "5")
    attached, mean, held = done.stdout.splitlines()
    assert (attached, mean) == ("attached: True", "mean of 40 items: 19.5")
    assert held.startswith("held: ")


@pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
def test_the_notebook_executed(kernels):  # noqa: F811 - the fixture
    notebook = json.loads((EXAMPLES / "explore.ipynb").read_text())
    kernel = kernels()
    said = [
        kernel.run("".join(cell["source"]))
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]
    assert said[0] == ""
    assert "tensors +256 MB" in said[1]
    assert "held" in said[2]
    assert "1 × float32 64x1024x1024" in said[3]
    assert said[4].startswith("freed ")


def test_the_readme_names_each():
    text = (EXAMPLES / "README.md").read_text()
    names = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}
    assert {name for name in names if name not in text} == set()
