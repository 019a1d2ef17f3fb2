"""transformers: Trainer on a tiny GPT-2 with random weights, then generate.

On the CPU: the software device has no events, which Trainer uses on MPS.
"""

import tempfile
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from transformers.utils import logging

logging.disable_progress_bar()
torch.manual_seed(0)
model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=64,
        n_positions=32,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=None,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
)
rows = [{"input_ids": (ids := torch.randint(0, 64, (16,))), "labels": ids} for _ in range(64)]
losses = []


class Notes(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **_):
        if "loss" in (logs or {}):
            losses.append(round(float(logs["loss"]), 5))
        time.sleep(0.03)


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        max_steps=40,
        per_device_train_batch_size=4,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        seed=0,
        dataloader_pin_memory=False,
        use_cpu=True,
    )
    Trainer(model, arguments, train_dataset=rows, callbacks=[Notes()]).train()
model.eval()
tokens = model.generate(
    torch.zeros(1, 1, dtype=torch.long, device=model.device),
    max_new_tokens=20,
    do_sample=False,
    pad_token_id=0,
)
print("result", losses[::5], tokens.tolist(), flush=True)
