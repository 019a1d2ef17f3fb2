"""Lightning: mpsbar run python examples/lightning_fit.py (needs pip install lightning)"""

import argparse

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

import mpsbar


class Autoencoder(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = torch.nn.Sequential(
            torch.nn.Linear(256, 64), torch.nn.ReLU(), torch.nn.Linear(64, 256)
        )

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        return torch.nn.functional.mse_loss(self.model(batch[0]), batch[0])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class PrintMemory(lightning.Callback):
    """Its memory at the end of each epoch; docs/experiment-tracking.md sends it to a logger."""

    def on_train_epoch_end(self, trainer: lightning.Trainer, _: lightning.LightningModule) -> None:
        print(f"epoch {trainer.current_epoch}: {mpsbar.memory()}", flush=True)


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=500)
steps = parser.parse_args().steps
data = DataLoader(TensorDataset(torch.randn(1024, 256)), batch_size=64)
trainer = lightning.Trainer(
    max_steps=steps, callbacks=[PrintMemory()], logger=False, enable_checkpointing=False
)
trainer.fit(Autoencoder(), data)
print(f"{trainer.global_step} steps")
