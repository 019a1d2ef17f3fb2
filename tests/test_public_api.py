"""mpsbar.snapshot(), and the examples of docs/experiment-tracking.md as they stand there."""

import json
import re
import subprocess
import sys
import textwrap

import pytest
from fleet_kit import MLX_WORKER
from worker_kit import NO_MPS, ROOT, TIMEOUT, need_module

DOCUMENT = ROOT / "docs/experiment-tracking.md"
needs_mps = pytest.mark.skipif(NO_MPS is not None, reason=str(NO_MPS))
# A model on the device, as anybody's script has one.
TRAIN = """
import torch
model = torch.nn.Linear(64, 64).to("mps")
def train_step():
    model(torch.ones(8, 64, device="mps")).sum().backward()
"""


def example(title, number=0):
    chapter = DOCUMENT.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", chapter, re.DOTALL)[number]


def run(workers, code, folder, **extra):
    usual = {
        "PYTHONPATH": str(ROOT),
        "SOFTMPS": "1",
        "HOME": str(folder),
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = subprocess.run(
        [sys.executable, "-B", "-c", textwrap.dedent(code)], env=workers.env(**(usual | extra)),
        cwd=folder, capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_examples_are_ten_lines():
    for title in ("Weights & Biases", "TensorBoard", "MLflow", "transformers", "Lightning"):
        assert len([line for line in example(title).splitlines() if line.strip()]) <= 10


def test_a_snapshot_of_this_computer(workers, tmp_path):
    need_module("mlx")
    worker = workers.start(MLX_WORKER)
    shown = run(workers, example("The whole computer"), tmp_path)
    assert f"{worker.pid} worker0.py " in shown
    code = "import mpsbar; s = mpsbar.snapshot(); print(type(s).__module__, s.machine.memory_total > 0)"
    assert run(workers, code, tmp_path) == "mpsbar.core.snapshot True\n"


def test_a_snapshot_from_inside_a_worker(workers, tmp_path):
    """Its own agent answers it, on another thread."""
    need_module("mlx")
    code = """
        import os, mlx.core as mx, mpsbar
        x = mx.ones((1 << 20,)); mx.eval(x)
        assert mpsbar.attach()
        state = None
        while state != "live":  # on a busy machine the agent may answer a moment too late
            (me,) = [w for w in mpsbar.snapshot().workers if w.pid == os.getpid()]
            state = me.state
        print(state, me.backends[0].allocated)
    """
    assert run(workers, code, tmp_path) == f"live {4 << 20}\n"


@needs_mps
def test_tensorboard(workers, tmp_path):
    need_module("tensorboard")
    read = """
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator("runs/mpsbar-example"); events.Reload()
import json; print(json.dumps([e.value for e in events.Scalars("memory/allocated")]))
"""
    found = json.loads(
        run(workers, TRAIN + example("TensorBoard") + read, tmp_path).splitlines()[-1]
    )
    assert len(found) == 5
    assert min(found) >= 64 * 64 * 4


@needs_mps
def test_transformers(workers, tmp_path):
    need_module("transformers")
    need_module("accelerate")
    code = """
class Tiny(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.layer = torch.nn.Linear(4, 1)
    def forward(self, x=None, labels=None):
        return {"loss": ((self.layer(x) - labels) ** 2).mean()}
from transformers import Trainer, TrainingArguments
data = [{"x": torch.ones(4), "labels": torch.ones(1)}] * 8
arguments = TrainingArguments("out", max_steps=3, logging_steps=1, report_to=[], use_cpu=True, disable_tqdm=True)
trainer = Trainer(Tiny(), arguments, train_dataset=data, callbacks=[LogMemory()])
trainer.train()
print([sorted(k for k in log if k.startswith("memory/")) for log in trainer.state.log_history])
"""
    assert "memory/allocated" in run(
        workers, TRAIN + "train_step()\n" + example("transformers") + code, tmp_path
    )


@needs_mps
def test_lightning(workers, tmp_path):
    need_module("lightning")
    code = """
import json, lightning
from lightning.pytorch.loggers import CSVLogger
class Tiny(lightning.LightningModule):
    def __init__(self):
        super().__init__(); self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, _):
        return self.layer(batch).mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
data = torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=2)
trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", log_every_n_steps=1, enable_progress_bar=False,
    enable_model_summary=False, enable_checkpointing=False, logger=CSVLogger("logs"), callbacks=[LogMemory()])
trainer.fit(Tiny(), data)
print(open(trainer.logger.log_dir + "/metrics.csv").readline())
"""
    assert "memory/allocated" in run(
        workers, TRAIN + "train_step()\n" + example("Lightning") + code, tmp_path
    )


@needs_mps
def test_mlflow(workers, tmp_path):
    need_module("mlflow")
    code = """
found = mlflow.MlflowClient().get_metric_history(mlflow.last_active_run().info.run_id, "memory/allocated")
print(len(found))
"""
    uri = f"file:{tmp_path}/mlruns"
    shown = run(
        workers,
        TRAIN + example("MLflow") + code,
        tmp_path,
        MLFLOW_TRACKING_URI=uri,
        MLFLOW_ALLOW_FILE_STORE="true",
    )
    assert shown.splitlines()[-1] == "5"


@needs_mps
def test_weights_and_biases_offline(workers, tmp_path):
    need_module("wandb")
    shown_before_the_end = "print(run.summary['memory/allocated'])\nrun.finish()"
    code = example("Weights & Biases").replace("run.finish()", shown_before_the_end)
    shown = run(
        workers, TRAIN + code + example("Weights & Biases", 1), tmp_path,
        WANDB_MODE="offline", WANDB_SILENT="true", WANDB_ERROR_REPORTING="false",
    )  # fmt: skip
    assert int(shown.splitlines()[-1]) >= 64 * 64 * 4
