"""transformers' Trainer: mpsbar run python examples/transformers_train.py

A tiny GPT-2 with random weights, so that nothing is downloaded.
Needs pip install transformers accelerate.
"""

import argparse
import tempfile
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

import mpsbar


class LogMemory(TrainerCallback):
    """What the trainer logs has the memory of this process, too."""

    def on_log(self, *_: Any, logs: dict[str, Any] | None = None, **__: Any) -> None:
        if logs is not None:
            logs.update(mpsbar.memory("memory/"))


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
steps = parser.parse_args().steps
sizes = {"vocab_size": 256, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 2}
model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))
rows = [{"input_ids": (ids := torch.randint(0, 256, (32,))), "labels": ids} for _ in range(256)]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        max_steps=steps,
        per_device_train_batch_size=8,
        logging_steps=5,
        save_strategy="no",
        report_to=[],
        dataloader_pin_memory=False,
    )
    Trainer(model, arguments, train_dataset=rows, callbacks=[LogMemory()]).train()
