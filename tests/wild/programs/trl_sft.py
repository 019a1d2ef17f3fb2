"""trl: supervised fine-tuning of a tiny GPT-2 with random weights."""

import tempfile
import time

import torch
from datasets import Dataset
from tiny_text import make_gpt2, make_tokenizer
from transformers import TrainerCallback
from trl import SFTConfig, SFTTrainer

torch.manual_seed(0)
losses = []


class Notes(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **_):
        if "loss" in (logs or {}):
            losses.append(round(float(logs["loss"]), 4))
        time.sleep(0.03)


rows = Dataset.from_dict({"text": ["one two three four", "five six seven eight"] * 20})
with tempfile.TemporaryDirectory() as folder:
    config = SFTConfig(
        folder,
        max_steps=20,
        per_device_train_batch_size=2,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        seed=0,
        bf16=False,
        max_length=16,
        dataloader_pin_memory=False,
    )
    trainer = SFTTrainer(
        make_gpt2(), config, train_dataset=rows, processing_class=make_tokenizer(),
        callbacks=[Notes()],
    )  # fmt: skip
    trainer.train()
print("result", losses, flush=True)
