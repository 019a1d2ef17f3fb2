"""transformers: Trainer on a tiny GPT-2 with random weights, then generate."""

import tempfile
import time

import torch
from tiny_text import make_gpt2
from transformers import Trainer, TrainerCallback, TrainingArguments

torch.manual_seed(0)
model = make_gpt2(64)
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
    )
    Trainer(model, arguments, train_dataset=rows, callbacks=[Notes()]).train()
model.to("cpu").eval()  # generate records events, which the software device has none of
tokens = model.generate(
    torch.zeros(1, 1, dtype=torch.long, device=model.device),
    max_new_tokens=20,
    do_sample=False,
    pad_token_id=0,
)
print("result", losses[::5], tokens.tolist(), flush=True)
